"""Adapters in a shared store: a folder or any URL supported by fsspec, with one subfolder per adapter.

The processes of a node share a cache. An entry is named by adapter and digest, so a changed adapter is a new entry.
Users of an entry hold a shared lock on its lock file, which the kernel releases when the process ends; only entries
that nobody holds are removed.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

SUMS = "SHA256SUMS"
SUM_LINE = re.compile(r"^([0-9a-f]{64}) [ *](\S.*)$")
NAME_BYTES, SUMS_BYTES, FILES = 200, 2**20, 100
PIECE = 4 * 2**20


class StoreError(Exception):
    """An error with the status of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class CacheFull(StoreError):
    def __init__(self, name: str, needed: int, limit: int) -> None:
        super().__init__(
            503,
            f"the adapter `{name}` ({needed} bytes) does not fit into the cache of {limit} bytes "
            "next to the adapters in use",
        )


def safe_name(name: str) -> bool:
    """True for a single path component that is not a hidden file."""
    return (
        0 < len(name.encode(errors="replace")) <= NAME_BYTES
        and not name.startswith(".")
        and not re.search(r"[/\\\x00-\x1f\x7f]", name)
    )


class Lease:
    """An adapter's folder, kept until it is released or the process ends."""

    def __init__(self, name: str, digest: str, path: pathlib.Path, descriptor: int) -> None:
        self.name, self.digest, self.path = name, digest, path
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


class AdapterStore:
    """Methods block, so callers use a thread."""

    def __init__(self, url: str, cache: str, limit: int, require_digests: bool) -> None:
        import fsspec

        self._fs, self._root = fsspec.core.url_to_fs(url)
        self._cache = pathlib.Path(cache)
        self._limit = limit
        self._require = require_digests
        self._cache.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        return safe_name(name) and self._fs.isdir(f"{self._root}/{name}")

    def lease(self, name: str) -> Lease:
        """Fetches the adapter if the node lacks it. Several processes that need the same adapter
        wait for the first one."""
        if not self.has(name):
            raise StoreError(404, f"The model `{name[:NAME_BYTES]}` does not exist.")
        sums = self._sums(name)
        digest = hashlib.sha256(repr(sorted(sums.items())).encode()).hexdigest()
        entry = self._cache / f"{name}@{digest[:16]}"
        while True:
            descriptor = os.open(f"{entry}.lock", os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if entry.is_dir():
                os.utime(f"{entry}.lock")
                return Lease(name, digest, entry, descriptor)
            os.close(descriptor)
            with locked(self._cache / ".lock"):  # one fetch at a time, to keep the limit
                if not entry.is_dir():
                    self._fetch(name, sums, entry)

    def _sums(self, name: str) -> dict[str, str]:
        """File name -> sha256; without SHA256SUMS, -> the store's metadata of the file."""
        folder = f"{self._root}/{name}"
        try:
            text = self._fs.cat_file(f"{folder}/{SUMS}", end=SUMS_BYTES).decode()
        except FileNotFoundError:
            if self._require:
                raise StoreError(
                    400,
                    f"the adapter `{name}` has no {SUMS}; make it with sha256sum, or set "
                    "digests: ignored",
                ) from None
            return self._listing(folder)
        found = [SUM_LINE.match(line) for line in text.splitlines() if line.strip()]
        sums = {match.group(2).removeprefix("./"): match.group(1) for match in found if match}
        if (
            not sums
            or len(sums) != len(found)
            or len(sums) > FILES
            or not all(map(safe_name, sums))
        ):
            raise StoreError(
                400,
                f"{SUMS} of the adapter `{name}` is not a list of sha256sum over the files next to it",
            )
        return sums

    def _listing(self, folder: str) -> dict[str, str]:
        files: dict[str, str] = {}
        for info in self._fs.ls(folder, detail=True):
            file = info["name"].rsplit("/", 1)[-1]
            if info["type"] == "file" and safe_name(file) and len(files) < FILES:
                stamp = (
                    info.get("ETag")
                    or info.get("etag")
                    or info.get("mtime")
                    or info.get("LastModified")
                )
                files[file] = f"{info['size']} {stamp}"
        return files

    def _fetch(self, name: str, sums: dict[str, str], entry: pathlib.Path) -> None:
        folder = f"{self._root}/{name}"
        try:
            needed = sum(self._fs.size(f"{folder}/{file}") for file in sums)
        except FileNotFoundError as error:
            raise StoreError(
                400,
                f"a file of the adapter `{name}` is missing: {os.path.basename(str(error))}",
            ) from None
        self._make_room(name, needed, entry)
        partial = pathlib.Path(tempfile.mkdtemp(prefix=".partial-", dir=self._cache))
        try:
            for file, wanted in sums.items():
                got = self._copy(f"{folder}/{file}", partial / file)
                if len(wanted) == 64 and got != wanted:
                    raise StoreError(
                        400,
                        f"the adapter `{name}` can't be loaded: {file} is not what {SUMS} says",
                    )
            partial.rename(entry)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _copy(self, source: str, target: pathlib.Path) -> str:
        digest = hashlib.sha256()
        with self._fs.open(source, "rb") as reader, target.open("wb") as writer:
            while piece := reader.read(PIECE):
                digest.update(piece)
                writer.write(piece)
        return digest.hexdigest()

    def _entries(self) -> Iterator[tuple[float, int, pathlib.Path]]:
        """Yields (last use, bytes, folder)."""
        for folder in self._cache.iterdir():
            lock = pathlib.Path(f"{folder}.lock")
            if folder.is_dir() and not folder.name.startswith(".") and lock.exists():
                yield lock.stat().st_mtime, sum(f.stat().st_size for f in folder.iterdir()), folder

    def used_bytes(self) -> int:
        return sum(size for _, size, _ in self._entries())

    def _make_room(self, name: str, needed: int, wanted: pathlib.Path) -> None:
        for rest in self._cache.glob(
            ".partial-*"
        ):  # left by a process that was killed; a running fetch would hold .lock
            shutil.rmtree(rest, ignore_errors=True)
        entries = sorted(self._entries())
        used = sum(size for _, size, _ in entries)
        for _, size, folder in entries:
            if used + needed <= self._limit:
                return
            if folder != wanted and self._remove(folder):
                used -= size
        if used + needed > self._limit:
            raise CacheFull(name, needed, self._limit)

    @staticmethod
    def _remove(folder: pathlib.Path) -> bool:
        descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
            return True
        except OSError:  # in use
            return False
        finally:
            os.close(descriptor)


def sums_of(folder: pathlib.Path) -> str:
    """The text of SHA256SUMS for the files in a folder."""
    files: list[Any] = sorted(f for f in folder.iterdir() if f.is_file() and f.name != SUMS)
    return "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
