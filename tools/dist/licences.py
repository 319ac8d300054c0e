"""Copies the licences of all parts into a tree: share/doc/PART/… and share/common-licenses."""

import pathlib
import re
import shutil
from collections.abc import Iterable

from machines import DebianPackage

DOC = pathlib.Path("/usr/share/doc")
COMMON = pathlib.Path("/usr/share/common-licenses")


def copy_debian(package: DebianPackage, to: pathlib.Path, doc: pathlib.Path = DOC) -> str:
    """Returns the text of the package's copyright file."""
    text = (doc / package.name / "copyright").read_text(errors="replace")
    (to / package.name).mkdir(parents=True, exist_ok=True)
    (to / package.name / "copyright").write_text(text)
    return text


def copy_common(texts: Iterable[str], to: pathlib.Path, common: pathlib.Path = COMMON) -> None:
    """The licences that copyright files only refer to."""
    named = {name.rstrip(".") for text in texts for name in re.findall(r"/usr/share/common-licenses/([\w.+-]+)", text)}
    to.mkdir(parents=True, exist_ok=True)
    for name in sorted(named):
        if (common / name).is_file():
            shutil.copyfile(common / name, to / name)


def torch_licences(torch: pathlib.Path) -> dict[str, pathlib.Path]:
    """torch's LICENSE, and those of what it holds, by their paths in its wheel. torch: the package's folder."""
    found = sorted(torch.parent.glob("torch-*.dist-info/licenses"))
    if len(found) != 1:
        raise ValueError(f"{torch.parent}: one torch-*.dist-info/licenses is wanted, not {len(found)}")
    return {str(path.relative_to(found[0])): path for path in sorted(found[0].rglob("*")) if path.is_file()}


def copy_torch(torch: pathlib.Path, to: pathlib.Path) -> None:
    for name, path in torch_licences(torch).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)


def declared(copyright_text: str) -> list[str]:
    """The short names of a machine-readable copyright file; empty if it is another one."""
    if not re.match(r"Format(-Specification)?: ", copyright_text):
        return []
    return sorted({name.strip() for name in re.findall(r"^License: *(\S.*)$", copyright_text, re.MULTILINE)})
