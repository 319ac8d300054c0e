"""Starts valora from Python: `Server` serves a model, `fuse` makes adapters. The program needs no Python."""

from .fusing import FuseFailed, fuse
from .program import DEMO, find_program
from .server import Server, ServerFailed

__all__ = ["DEMO", "FuseFailed", "Server", "ServerFailed", "find_program", "fuse"]
