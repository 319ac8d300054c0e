"""The tests' second environment, .venv-newest: the newest releases of transformers, PEFT and Pillow (tools/setup)."""

import os
import subprocess

import pytest

from programs import REPOSITORY

INTERPRETER = REPOSITORY / ".venv-newest" / "bin" / "python"


def run(script, *arguments, timeout=600):
    """Runs a script of tests/ in that environment, with the helpers and the script's folder on its path; its output."""
    if not INTERPRETER.exists():
        pytest.skip("there is no .venv-newest (tools/setup tests makes it)")
    script = REPOSITORY / "tests" / script
    path = os.pathsep.join([str(REPOSITORY / "tests" / "helpers"), str(script.parent)])
    done = subprocess.run([INTERPRETER, script, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
