"""The machines that artefacts are made for, and Debian's packages of each. This machine's are installed; others' are
unpacked by tools/arm."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
from collections.abc import Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class DebianPackage:
    name: str
    version: str
    source: str
    source_version: str


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str  # as uname -m says
    debian: str  # Debian's name of it

    @property
    def strip(self) -> str:
        return "strip"

    def ldd(self, program: pathlib.Path) -> str:
        return subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout

    def file(self, path: pathlib.Path) -> pathlib.Path:
        """Where a file of the machine's system is."""
        return path

    def owners(self, paths: Iterable[pathlib.Path]) -> dict[pathlib.Path, str]:
        """The Debian packages of files, without those that no package has. dpkg may know a file by its path before
        /lib became a link to /usr/lib."""
        real = {path: path.resolve() for path in paths}
        asked = {str(p) for p in real.values()} | {str(p).removeprefix("/usr") for p in real.values()}
        done = subprocess.run(["dpkg-query", "-S", *sorted(asked)], capture_output=True, text=True)
        lines = [line.split(": ", 1) for line in done.stdout.splitlines() if ": /" in line]
        known = {path: names.split(",")[0].split(":")[0] for names, path in lines}
        found = {path: known.get(str(p)) or known.get(str(p).removeprefix("/usr")) for path, p in real.items()}
        return {path: name for path, name in found.items() if name}

    def packages(self, names: Iterable[str]) -> dict[str, DebianPackage]:
        wanted = sorted(set(names))
        form = "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${db:Status-Status}\n"
        shown = subprocess.run(["dpkg-query", "-W", "-f", form, *wanted], capture_output=True, text=True, check=True).stdout
        rows = [line.split("\t") for line in shown.splitlines()]
        return {row[0]: DebianPackage(*row[:4]) for row in rows if row[4] == "installed"}


@dataclasses.dataclass(frozen=True)
class UnpackedMachine(Machine):
    """Emulated by qemu-user, with Debian's packages unpacked in a folder."""

    folder: pathlib.Path  # has `root` and packages.json

    @property
    def strip(self) -> str:
        return f"{self.name}-linux-gnu-strip"

    @property
    def root(self) -> pathlib.Path:
        return self.folder / "root"

    def ldd(self, program: pathlib.Path) -> str:
        command = [f"qemu-{self.name}", "-L", str(self.root), "-E", "LD_TRACE_LOADED_OBJECTS=1", str(program)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def file(self, path: pathlib.Path) -> pathlib.Path:
        """The loader in the root names files as if the root were /."""
        found = self.root / str(path).lstrip("/")
        return found if found.exists() else path

    @functools.cached_property
    def known(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "packages.json").read_text())
        return data

    def owners(self, paths: Iterable[pathlib.Path]) -> dict[pathlib.Path, str]:
        found = {}
        for path in paths:
            inside = "/" + os.path.relpath(self.file(path).resolve(), self.root.resolve())
            name = self.known["files"].get(inside) or self.known["files"].get(inside.removeprefix("/usr"))
            if name:
                found[path] = name
        return found

    def packages(self, names: Iterable[str]) -> dict[str, DebianPackage]:
        return {name: DebianPackage(name, *self.known["packages"][name]) for name in sorted(set(names))}


X86_64 = Machine("x86_64", "amd64")
MACHINES: dict[str, Machine] = {"x86_64": X86_64, "aarch64": UnpackedMachine("aarch64", "arm64", ROOT / ".arm")}
