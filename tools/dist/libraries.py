"""The shared libraries that a program needs, and the Debian packages that they come from."""

import dataclasses
import pathlib
import re
import subprocess
from collections.abc import Iterable

# The C library's own package: its libraries fit only each other and the system's loader, so they stay the system's.
C_LIBRARY = "libc6"
OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b.*\.so")


@dataclasses.dataclass(frozen=True)
class DebianPackage:
    name: str
    version: str
    source: str
    source_version: str


@dataclasses.dataclass(frozen=True)
class Library:
    soname: str
    path: pathlib.Path
    package: DebianPackage | None  # None: of the torch that the program was built with


def needed(listed: str) -> dict[str, pathlib.Path]:
    """File names and paths of the libraries in ldd's output."""
    missing = re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE)
    if missing:
        raise ValueError(f"libraries of the program are not there: {', '.join(missing)}")
    return {name: pathlib.Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE)}


def check_one_openmp(names: Iterable[str]) -> None:
    """Two runtimes in one process start twice as many threads as there are cores, and may deadlock."""
    found = sorted(name for name in names if OPENMP.match(name))
    if len(found) != 1:
        raise ValueError(f"exactly one OpenMP runtime is wanted, not {', '.join(found) or 'none'}")


def owners(paths: Iterable[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The Debian packages of files, without those that no package has. dpkg may know a file by its path before
    /lib became a link to /usr/lib."""
    real = {path: path.resolve() for path in paths}
    asked = {str(p) for p in real.values()} | {str(p).removeprefix("/usr") for p in real.values()}
    done = subprocess.run(["dpkg-query", "-S", *sorted(asked)], capture_output=True, text=True)
    known = {path: names.split(",")[0].split(":")[0] for names, path in re.findall(r"^(.+): (/.+)$", done.stdout, re.MULTILINE)}
    found = {path: known.get(str(p)) or known.get(str(p).removeprefix("/usr")) for path, p in real.items()}
    return {path: name for path, name in found.items() if name}


def packages(names: Iterable[str]) -> dict[str, DebianPackage]:
    wanted = sorted(set(names))
    form = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${db:Status-Status}\n"
    shown = subprocess.run(["dpkg-query", "-W", "-f", form, *wanted], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in shown.splitlines()]
    return {row[0]: DebianPackage(*row[:4]) for row in rows if row[4] == "installed"}


def libraries_of(program: pathlib.Path) -> list[Library]:
    """What the program loads at its start, sorted by name, without the C library's."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    paths = needed(listed)
    owner = owners(paths.values())
    known = packages(owner.values())
    found = []
    for name, path in sorted(paths.items()):
        package = known[owner[path]] if path in owner else None
        if not package or package.name != C_LIBRARY:
            found.append(Library(name, path.resolve(), package))
    check_one_openmp(library.soname for library in found)
    return found
