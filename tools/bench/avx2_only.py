"""Runs a program as on a CPU that has AVX2 alone, whatever this one has. Needs an Intel CPU with cpuid faults. What a program
chooses while it is linked (ifuncs) comes before that; valora, which does so, is restricted by VALORA_ISA.

    python tools/bench/avx2_only.py program arguments…
"""

import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_suffix(".c")


def possible():
    """Whether this CPU can hide what it has."""
    return " cpuid_fault " in pathlib.Path("/proc/cpuinfo").read_text()


def environment(base):
    """`base` for programs that shall not see more than AVX2."""
    library = pathlib.Path(tempfile.gettempdir()) / f"avx2_only.{os.getuid()}.so"
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        part = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-Wl,-z,initfirst", SOURCE, "-o", part], check=True)
        part.replace(library)
    return {**base, "LD_PRELOAD": str(library), "VALORA_ISA": "avx2"}


if __name__ == "__main__":
    os.execvpe(sys.argv[1], sys.argv[1:], environment(os.environ))
