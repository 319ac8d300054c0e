"""Archives whose bytes depend on their files alone: sorted names, one date, one owner."""

import pathlib
import subprocess
import tarfile
from typing import BinaryIO

# libtorch_cpu.so packed by -1 is 3 % larger than by -2.
XZ = ["xz", "--threads=2", "-1", "--block-size=16MiB", "--stdout"]


def members(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted([folder, *folder.rglob("*")], key=lambda path: path.relative_to(folder.parent).parts)


def normalised(entry: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    entry.mtime = epoch
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    executable = entry.isdir() or bool(entry.mode & 0o100)
    entry.mode = 0o755 if executable else 0o644
    return entry


def write_tar(folder: pathlib.Path, name: str, epoch: int, out: BinaryIO) -> None:
    """name: the folder's path in the archive; "" for none."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in members(folder):
            inside = "/".join(filter(None, [name, path.relative_to(folder).as_posix()])).removesuffix("/.")
            if inside in ("", "."):
                continue
            entry = normalised(tar.gettarinfo(path, inside), epoch)
            if entry.isreg():
                with path.open("rb") as data:
                    tar.addfile(entry, data)
            else:
                tar.addfile(entry)


def write_tar_xz(folder: pathlib.Path, name: str, epoch: int, to: pathlib.Path) -> None:
    with to.open("wb") as out:
        packer = subprocess.Popen(XZ, stdin=subprocess.PIPE, stdout=out)
        assert packer.stdin
        write_tar(folder, name, epoch, packer.stdin)  # type: ignore[arg-type]
        packer.stdin.close()
        if packer.wait() != 0:
            raise RuntimeError("xz failed")
