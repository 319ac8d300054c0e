"""The version, the commit and its date, and the artefacts' names."""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = "linux-x86_64"


@dataclasses.dataclass(frozen=True)
class Release:
    version: str  # of project() in CMakeLists.txt
    commit: str
    epoch: int  # the commit's date; all files of all artefacts get it

    @property
    def name(self) -> str:
        """Also the folder in the archive."""
        return f"valora-{self.version}-{SYSTEM}"

    @property
    def archive(self) -> str:
        return f"{self.name}.tar.xz"

    @property
    def sbom(self) -> str:
        return f"{self.name}.spdx.json"

    @property
    def debian_package(self) -> str:
        return f"valora_{self.version}_amd64.deb"

    @property
    def image(self) -> str:
        return f"valora-{self.version}-oci.tar"

    def wheel(self, platform: str) -> str:
        return f"valora-{self.version}-py3-none-{platform}.whl"


def version_of(cmake_text: str) -> str:
    found = re.search(r"^project\(valora VERSION (\d+\.\d+\.\d+)\b", cmake_text, re.MULTILINE)
    if not found:
        raise ValueError("CMakeLists.txt has no line project(valora VERSION X.Y.Z …)")
    return found[1]


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def this_release() -> Release:
    version = version_of((ROOT / "CMakeLists.txt").read_text())
    return Release(version, git("rev-parse", "HEAD"), int(git("log", "-1", "--format=%ct")))
