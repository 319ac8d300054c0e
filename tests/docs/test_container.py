"""The Dockerfile must install the packages of all libraries that the built program links."""

import functools
import pathlib
import re
import shutil
import subprocess

import pytest

from programs import REPOSITORY, find_program

pytestmark = pytest.mark.skipif(not shutil.which("dpkg"), reason="not a Debian system")


@functools.cache
def library_paths():
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return dict(reversed(re.findall(r"^\t(\S+) .* => (\S+)$", listed, re.MULTILINE)))


def owner(library):
    """The Debian package of a library; None for libtorch's libraries, which are installed next to
    the program."""
    path = library_paths().get(library)
    if not path:
        return None
    done = subprocess.run(["dpkg", "-S", pathlib.Path(path).resolve()], capture_output=True, text=True)
    return done.stdout.split(":")[0] or None


def test_image_contains_the_linked_libraries():
    needed = subprocess.run(["readelf", "-d", find_program("valora")], capture_output=True, text=True, check=True).stdout
    owners = {owner(library) for library in re.findall(r"NEEDED.*\[(.*)\]", needed)} - {None, "libc6", "libgomp1"}
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert len(owners) > 5
    assert sorted(name for name in owners if f" {name} " not in dockerfile.replace("\\\n", " ")) == []
