"""The wheel: python/valora around the tree, built by hatchling."""

import os
import pathlib
import shutil
import subprocess

from names import ROOT, Release
from tree import TOOLS


def make_wheel(release: Release, work: pathlib.Path, output: pathlib.Path) -> pathlib.Path:
    source = work / "wheel"  # hatchling leaves nothing in the checkout
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "python/valora", source, ignore=shutil.ignore_patterns("tests", "__pycache__", ".*_cache"))
    environment = os.environ | {
        "VALORA_TREE": str(work / "tree"),
        "VALORA_PLATFORM": release.platform,
        "VALORA_VERSION": release.version,
        "SOURCE_DATE_EPOCH": str(release.epoch),
    }
    command = [str(TOOLS / "pyproject-build"), "--wheel", "--no-isolation", "--outdir", str(output), str(source)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the wheel was not built: {(done.stdout + done.stderr).strip()[-2000:]}")
    made = output / release.wheel
    check(made, release.platform)
    return made


def check(wheel: pathlib.Path, platform: str) -> None:
    package = ROOT / "python/valora"
    for command in (["auditwheel", "show", str(wheel)], ["twine", "check", "--strict", str(wheel)],
                    ["mypy", "--config-file", str(package / "pyproject.toml"), str(package / "valora")]):
        done = subprocess.run([str(TOOLS / command[0]), *command[1:]], capture_output=True, text=True)
        text = done.stdout + done.stderr
        if done.returncode or (command[0] == "auditwheel" and platform not in text):
            raise RuntimeError(f"{command[0]} does not accept {wheel.name}: {text.strip()[-2000:]}")
