#!/usr/bin/env python3
"""Makes the artefacts of a release: `make dist` calls it.

    tools/dist/make.py [--machine x86_64] [--build build] [--output dist] [tar wheel deb image …]

Everything goes by way of the tree, which is kept in the folder OUTPUT/work.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import sys
import time

import archive
import deb
import image
import tree
import wheel
from machines import MACHINES, ROOT, X86_64
from names import Release, this_release


def make_tar(release: Release, work: pathlib.Path, output: pathlib.Path) -> pathlib.Path:
    to = output / release.archive
    archive.write_tar_xz(work / "tree", release.name, release.epoch, to)
    shutil.copyfile(work / "tree" / tree.DATA / "valora.spdx.json", output / release.sbom)
    return to


def write_checksums(output: pathlib.Path) -> None:
    lines = []
    for path in sorted(output.iterdir()):
        if path.is_file() and path.name != "SHA256SUMS":
            with path.open("rb") as data:
                lines.append(f"{hashlib.file_digest(data, 'sha256').hexdigest()}  {path.name}\n")
    (output / "SHA256SUMS").write_text("".join(lines))


MAKERS = {"tar": make_tar, "wheel": wheel.make_wheel, "deb": deb.make_deb, "image": image.make_image}


def make(release: Release, build: pathlib.Path, output: pathlib.Path, kinds: list[str]) -> None:
    os.environ["SOURCE_DATE_EPOCH"] = str(release.epoch)
    work = output / "work"
    work.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    tree.make_tree(release, build, work / "tree")
    print(f"dist: the tree ({time.monotonic() - start:.0f} s)", flush=True)
    for kind in kinds:
        start = time.monotonic()
        made = MAKERS[kind](release, work, output)
        taken = time.monotonic() - start
        print(f"dist: {made.name}, {made.stat().st_size / 1e6:.1f} MB ({taken:.0f} s)", flush=True)
    write_checksums(output)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--machine", choices=[*MACHINES], default=X86_64.name, help="aarch64: what tools/arm built; no image")
    parser.add_argument("kinds", nargs="*", choices=[*MAKERS, []], default=[])
    options = parser.parse_args()
    try:
        machine = MACHINES[options.machine]
        kinds = options.kinds or [kind for kind in MAKERS if machine == X86_64 or kind != "image"]
        make(this_release(machine), options.build.resolve(), options.output.resolve(), kinds)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
