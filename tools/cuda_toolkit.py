"""Locates CUDA's compiler and headers."""

import os
import pathlib
import re
import shutil
import subprocess


def find_nvcc():
    return os.environ.get("NVCC") or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def target_of(nvcc):
    """The folder of headers and libraries; nvcc on the path may be a script."""
    shown = subprocess.run([nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"], capture_output=True, text=True)
    top = re.search(r"^#\$ TOP=(.*)$", shown.stderr, re.MULTILINE)
    return (pathlib.Path(top[1]) if top else pathlib.Path("/usr/local/cuda")) / "targets/x86_64-linux"
