"""Bare Debian roots, and processes in them that see nothing else: read-only, without a home, as a number that no user
has, with the loopback interface alone. Needs root."""

import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any

from image import UNSAFE_IO, debian_sources
from tree import run

NOBODY = "54321:54321"  # no user of any root
INSIDE = pathlib.Path(__file__).with_name("inside.py")


def make_root(to: pathlib.Path, cache: pathlib.Path, *packages: str) -> None:
    """Debian 12's minbase, with further packages. cache: the folder that keeps a tar of it."""
    tar = cache / f"{'-'.join(['minbase', *packages])}.tar"
    if not tar.exists():
        include = [f"--include={','.join(packages)}"] if packages else []
        partial = tar.with_suffix(".partial.tar")
        run("mmdebstrap", "--quiet", UNSAFE_IO, "--variant=minbase", *include, "bookworm", partial, debian_sources())
        partial.rename(tar)
    remove(to)
    to.mkdir(parents=True)
    run("tar", "-xf", tar, "-C", to, "--exclude=./dev/*")


def remove(root: pathlib.Path) -> None:
    if root.exists():
        shutil.rmtree(root)


def call(root: pathlib.Path, *command: str) -> str:
    """Runs a command in the root as root, e.g. an installation; without a network."""
    return run("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "chroot", root, "/usr/bin/env", "-i",
               "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command)


def inside(root: pathlib.Path, demo: str, *command: str, answers: bool = True) -> Any:
    """What inside.py prints for the command in the closed root."""
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, str(INSIDE), str(root), NOBODY, demo,
             "ask" if answers else "run", *command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} in a bare root: {(done.stderr or done.stdout).strip()[-3000:]}")
    return json.loads(done.stdout)
