"""The shared libraries that a program needs, and the Debian packages that they come from."""

import dataclasses
import pathlib
import re
from collections.abc import Iterable

from machines import DebianPackage, Machine

# The C library's own package: its libraries fit only each other and the system's loader, so they stay the system's.
C_LIBRARY = "libc6"
OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b.*\.so")


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


def libraries_of(program: pathlib.Path, machine: Machine) -> list[Library]:
    """What the program loads at its start, sorted by name, without the C library's."""
    paths = needed(machine.ldd(program))
    owner = machine.owners(paths.values())
    known = machine.packages(owner.values())
    found = []
    for name, path in sorted(paths.items()):
        package = known[owner[path]] if path in owner else None
        if not package or package.name != C_LIBRARY:
            found.append(Library(name, machine.file(path).resolve(), package))
    check_one_openmp(library.soname for library in found)
    return found
