"""The modules under test: those of tools/dist and the package valora."""

import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tools/dist"), str(REPOSITORY / "python/valora")]
