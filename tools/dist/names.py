"""The version, the commit and its date, and the artefacts' names."""

import dataclasses
import re
import subprocess

from machines import ROOT, X86_64, Machine



@dataclasses.dataclass(frozen=True)
class Release:
    version: str  # of project() in CMakeLists.txt
    commit: str
    epoch: int  # the commit's date; all files of all artefacts get it
    machine: Machine = X86_64

    @property
    def name(self) -> str:
        """Also the folder in the archive."""
        return f"valora-{self.version}-linux-{self.machine.name}"

    @property
    def archive(self) -> str:
        return f"{self.name}.tar.xz"

    @property
    def sbom(self) -> str:
        return f"{self.name}.spdx.json"

    @property
    def debian_package(self) -> str:
        return f"valora_{self.version}_{self.machine.debian}.deb"

    @property
    def image(self) -> str:
        return f"valora-{self.version}-oci.tar"

    @property
    def platform(self) -> str:
        """Of the wheel: Debian 12's glibc, which the libraries were built against. `auditwheel show` checks it."""
        return f"manylinux_2_36_{self.machine.name}"

    @property
    def wheel(self) -> str:
        return f"valora-{self.version}-py3-none-{self.platform}.whl"


def version_of(cmake_text: str) -> str:
    found = re.search(r"^project\(valora VERSION (\d+\.\d+\.\d+)\b", cmake_text, re.MULTILINE)
    if not found:
        raise ValueError("CMakeLists.txt has no line project(valora VERSION X.Y.Z …)")
    return found[1]


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def this_release(machine: Machine = X86_64) -> Release:
    version = version_of((ROOT / "CMakeLists.txt").read_text())
    return Release(version, git("rev-parse", "HEAD"), int(git("log", "-1", "--format=%ct")), machine)
