"""`valora fuse`: makes adapters from tasks."""

import os
import pathlib
import subprocess
from collections.abc import Sequence

from .program import find_program

StrPath = str | os.PathLike[str]
FLOOR_MISSED = 3  # the exit status if a task misses its floor


class FuseFailed(Exception):
    """No adapters were made. The message has the end of the program's output."""


def fuse(
    model: StrPath,
    tasks: StrPath,
    output: StrPath,
    *,
    options: Sequence[str] = (),
    program: StrPath | None = None,
) -> pathlib.Path:
    """Trains the fewest adapters that keep the floors of all tasks; returns the path of their manifest.json.

    `options` are further words of the command line. Raises FuseFailed, also if a task misses its floor.
    """
    command = [os.fspath(program or find_program()), "fuse", "--model", os.fspath(model), "--tasks", os.fspath(tasks)]
    command += ["--output", os.fspath(output), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        why = "a task misses its floor" if done.returncode == FLOOR_MISSED else f"status {done.returncode}"
        raise FuseFailed(f"valora fuse: {why}:\n" + "\n".join(done.stdout.splitlines()[-40:]))
    return pathlib.Path(output) / "manifest.json"
