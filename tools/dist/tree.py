"""The relocatable tree: the program, all libraries that it loads but the C library's, licences, documents, the demo."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import licences
import sbom
from libraries import Library, libraries_of
from machines import DebianPackage, Machine
from names import ROOT, Release

LIBRARIES = pathlib.Path("lib/valora")  # not lib: unpacked over /usr/local, they must not become everyone's
DOC = pathlib.Path("share/doc/valora")
DATA = pathlib.Path("share/valora")
HEADERS = ["libboost1.81-dev", "libcli11-dev", "nlohmann-json3-dev"]  # compiled in, so no library shows them
DEMO = ["README.md", "adapters", "manifest.json", "model", "samples", "samples.json"]
TOOLS = ROOT / ".venv-dist/bin"
GPL = "Apache-2.0 AND GPL-2.0-or-later"  # with Debian's FFmpeg, which is built with its GPL parts


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def install(build: pathlib.Path, tree: pathlib.Path) -> None:
    """`make install` into the tree. `make uninstall` keeps its own list of files."""
    listed = build / "install_manifest.txt"
    before = listed.read_bytes() if listed.exists() else None
    run("cmake", "--install", build, "--prefix", tree, "--strip")
    if before is None:
        listed.unlink()
    else:
        listed.write_bytes(before)
    shutil.rmtree(tree / LIBRARIES)  # they come below, from where the built program loads them
    (tree / "bin/valora-bench").unlink(missing_ok=True)


def set_run_path(path: pathlib.Path, run_path: str) -> None:
    """As DT_RPATH, which LD_LIBRARY_PATH of other software does not override."""
    run(TOOLS / "patchelf", "--force-rpath", "--set-rpath", run_path, path)


def copy_libraries(libraries: list[Library], machine: Machine, tree: pathlib.Path) -> None:
    (tree / LIBRARIES).mkdir(parents=True)
    for library in libraries:
        to = tree / LIBRARIES / library.soname
        shutil.copyfile(library.path, to)
        to.chmod(0o755)
        run(machine.strip, "--strip-unneeded", to)  # before patchelf, whose changes strip can break
        set_run_path(to, "$ORIGIN")
    set_run_path(tree / "bin/valora", f"$ORIGIN/../{LIBRARIES}")


def copy_documents(tree: pathlib.Path) -> None:
    (tree / DOC / "docs").mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "docs").glob("*.md")):
        shutil.copyfile(path, tree / DOC / "docs" / path.name)
    for name in ("CHANGELOG.md", "SECURITY.md"):
        shutil.copyfile(ROOT / name, tree / DOC / name)
    shutil.copyfile(ROOT / "share/dist/README.md", tree / "README.md")


def copy_demo(tree: pathlib.Path) -> None:
    to = tree / DATA / "demo"
    to.mkdir(parents=True)
    for name in DEMO:
        path = ROOT / "demo" / name
        if path.is_dir():
            shutil.copytree(path, to / name)
        else:
            shutil.copyfile(path, to / name)


def xgrammar_version() -> str:
    found = re.search(r"^xgrammar==(\S+)", (ROOT / "tools/requirements-sources.txt").read_text(), re.MULTILINE)
    assert found
    return found[1]


def torch_folder(libraries: list[Library]) -> pathlib.Path:
    foreign = {library.path.parent.parent for library in libraries if library.package is None}
    if len(foreign) != 1 or not (next(iter(foreign)) / "version.py").is_file():
        raise ValueError(f"libraries that no Debian package has are wanted of torch alone: {sorted(map(str, foreign))}")
    return foreign.pop()


def torch_version(folder: pathlib.Path) -> str:
    found = re.search(r"^__version__ = '([^']+)'", (folder / "version.py").read_text(), re.MULTILINE)
    assert found
    return found[1]


def debian_parts(machine: Machine, libraries: list[Library], texts: dict[DebianPackage, str]) -> list[sbom.Part]:
    parts = []
    for package, text in texts.items():
        files = tuple(str(LIBRARIES / lib.soname) for lib in libraries if lib.package == package)
        named = licences.declared(text)
        source = sbom.debian_purl("source", package.source, package.source_version)
        notes = [f"source: {source}", *([f"licences named: {', '.join(named)}"] if named else [])]
        purl = sbom.debian_purl(machine.debian, package.name, package.version)
        parts.append(sbom.Part(package.name, package.version, purl, "NOASSERTION", files, "; ".join(notes)))
    return parts


def write_sbom(release: Release, libraries: list[Library], texts: dict[DebianPackage, str], tree: pathlib.Path) -> None:
    folder = torch_folder(libraries)
    version = torch_version(folder)
    of_torch = tuple(str(LIBRARIES / lib.soname) for lib in libraries if lib.package is None)
    own = sbom.Part("valora", release.version, f"pkg:generic/valora@{release.version}", "Apache-2.0", ("bin/valora",),
                    f"commit {release.commit}")
    parts = debian_parts(release.machine, libraries, texts)
    parts.append(sbom.Part("torch", version, f"pkg:pypi/torch@{version.replace('+', '%2B')}", "BSD-3-Clause", of_torch,
                           "its parts: share/doc/valora/parts/torch"))
    parts.append(sbom.Part("xgrammar", xgrammar_version(), f"pkg:pypi/xgrammar@{xgrammar_version()}", "Apache-2.0",
                           ("bin/valora",), "compiled in, with headers of picojson (BSD-2-Clause) and DLPack (Apache-2.0)"))
    text = json.dumps(sbom.document(release, own, parts), indent=1, sort_keys=True) + "\n"
    (tree / DATA / "valora.spdx.json").write_text(text)


def set_modes(tree: pathlib.Path) -> None:
    for path in tree.rglob("*"):
        if path.is_symlink():
            raise ValueError(f"{path}: wheels hold no links")
        os.chmod(path, 0o755 if path.is_dir() or path.parent.name in ("bin", LIBRARIES.name) and ".so" in path.name
                 or path.parent.name == "bin" else 0o644)


def check_no_paths(tree: pathlib.Path) -> None:
    """The name of the checkout's folder may be a user's."""
    own = str(ROOT).encode()
    found = [path for path in tree.rglob("*") if path.is_file() and own in path.read_bytes()]
    if found:
        raise ValueError(f"these files name {ROOT}: {', '.join(map(str, found))}")


def make_tree(release: Release, build: pathlib.Path, tree: pathlib.Path) -> None:
    if tree.exists():
        shutil.rmtree(tree)
    machine = release.machine
    libraries = libraries_of(build / "valora", machine)
    install(build, tree)
    copy_libraries(libraries, machine, tree)
    used = {lib.package for lib in libraries if lib.package} | set(machine.packages(HEADERS).values())
    parts = tree / DOC / "parts"
    ordered = sorted(used, key=lambda package: package.name)
    texts = {package: licences.copy_debian(package, parts, machine.file(licences.DOC)) for package in ordered}
    licences.copy_common(texts.values(), tree / DOC / "common-licenses")
    licences.copy_torch(torch_folder(libraries), parts / "torch")
    copy_documents(tree)
    copy_demo(tree)
    write_sbom(release, libraries, texts, tree)
    set_modes(tree)
    check_no_paths(tree)
