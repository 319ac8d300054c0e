"""The container image, as an archive of an OCI image layout (https://github.com/opencontainers/image-spec).

Two layers: Debian's essential packages with the certificates of authorities, and the tree as /usr/local. No daemon.
"""

import datetime
import gzip
import hashlib
import json
import pathlib
import shutil
import tarfile
from typing import Any

import archive
from names import Release
from tree import run

UID = 10001
UNSAFE_IO = "--dpkgopt=force-unsafe-io"  # dpkg waits for the disk after each file otherwise
SOURCES = pathlib.Path("/etc/apt/sources.list.d/debian.sources"), pathlib.Path("/etc/apt/sources.list")
# /etc/passwd has names for people and programs that ask; the kernel knows numbers alone.
ADD_USER = (f"echo valora:x:{UID}:{UID}::/var/lib/valora:/usr/sbin/nologin >>\"$1/etc/passwd\"; "
            f"echo valora:x:{UID}: >>\"$1/etc/group\"; install -d -o {UID} -g {UID} \"$1/var/lib/valora\"")
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def debian_sources() -> pathlib.Path:
    found = [path for path in SOURCES if path.is_file()]
    if not found:
        raise ValueError(f"none of {', '.join(map(str, SOURCES))} is there: which packages the image has is read from it")
    return found[0]


def make_root(to: pathlib.Path) -> None:
    """A tar of Debian 12's essential packages; its dates follow SOURCE_DATE_EPOCH."""
    run("mmdebstrap", "--quiet", UNSAFE_IO, "--variant=essential", "--include=ca-certificates", "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*", f"--customize-hook={ADD_USER}", "bookworm", to, debian_sources())


class Layout:
    """A folder in OCI's layout."""

    def __init__(self, folder: pathlib.Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.blobs = folder / "blobs/sha256"
        self.blobs.mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def add(self, media_type: str, path: pathlib.Path) -> dict[str, Any]:
        """Moves a file in; returns its descriptor."""
        with path.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
        to = self.blobs / digest
        shutil.move(path, to)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": to.stat().st_size}

    def add_json(self, media_type: str, value: object) -> dict[str, Any]:
        path = self.folder / "json.partial"
        path.write_text(json.dumps(value, sort_keys=True))
        return self.add(media_type, path)

    def add_layer(self, tar: pathlib.Path) -> tuple[dict[str, Any], str]:
        """Also returns the digest of the layer unpacked."""
        with tar.open("rb") as data:
            diff = hashlib.file_digest(data, "sha256").hexdigest()
        packed = self.folder / "layer.partial"
        with tar.open("rb") as data, packed.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as out:
            shutil.copyfileobj(data, out, 1 << 20)
        return self.add(LAYER, packed), f"sha256:{diff}"


def config_of(release: Release, diffs: list[str]) -> dict[str, Any]:
    made = datetime.datetime.fromtimestamp(release.epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": made,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": str(UID),
            "WorkingDir": "/var/lib/valora",
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
            "Entrypoint": ["valora"],
            "Cmd": ["serve", "--help"],
            "ExposedPorts": {"8000/tcp": {}},
            "Labels": {
                "org.opencontainers.image.title": "valora",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.licenses": "Apache-2.0 AND GPL-2.0-or-later",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": diffs},
        "history": [{"created": made, "created_by": "tools/dist"} for _ in diffs],
    }


def make_image(release: Release, work: pathlib.Path, output: pathlib.Path) -> pathlib.Path:
    layout = Layout(work / "image")
    root, own = work / "image-root.tar", work / "image-tree.tar"
    make_root(root)
    with own.open("wb") as out:
        archive.write_tar(work / "tree", "usr/local", release.epoch, out)
    layers = [layout.add_layer(path) for path in (root, own)]
    for path in (root, own):
        path.unlink()
    config = layout.add_json(CONFIG, config_of(release, [diff for _, diff in layers]))
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer for layer, _ in layers]}
    descriptor = layout.add_json(MANIFEST, manifest) | {
        "annotations": {"org.opencontainers.image.ref.name": release.version,
                        "io.containerd.image.name": f"valora:{release.version}"}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]}
    (layout.folder / "index.json").write_text(json.dumps(index, sort_keys=True))
    to = output / release.image
    with tarfile.open(to, "w") as tar:
        for path in archive.members(layout.folder)[1:]:
            entry = archive.normalised(tar.gettarinfo(path, path.relative_to(layout.folder).as_posix()), release.epoch)
            with path.open("rb") if entry.isreg() else open("/dev/null", "rb") as data:
                tar.addfile(entry, data)
    return to
