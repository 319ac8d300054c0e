"""The program: the wheel's, or the one on the path."""

import os
import pathlib
import shutil
import sys

TREE = pathlib.Path(__file__).resolve().parent / "tree"
# The demo's model, adapters, pictures and manifest.json.
DEMO = TREE / "share" / "valora" / "demo"


def find_program() -> str:
    """The path of `valora`: $VALORA_PROGRAM, the wheel's, or the first on the path."""
    own = TREE / "bin" / "valora"
    found = os.environ.get("VALORA_PROGRAM") or (str(own) if own.is_file() else shutil.which("valora"))
    if not found:
        raise FileNotFoundError("this package has no program, and there is no valora on the path")
    return found


def main() -> None:
    """The console command: becomes the program."""
    own = TREE / "bin" / "valora"
    if not own.is_file():
        sys.exit("valora: this package has no program; install a wheel of a release")
    os.execv(own, ["valora", *sys.argv[1:]])
