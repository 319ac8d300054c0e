"""The Debian package: Debian's own libraries by Depends, libtorch in /usr/lib/valora, a systemd unit."""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from machines import ROOT, X86_64, Machine
from names import Release
from tree import DATA, DOC, LIBRARIES, run

SCRIPTS = ["postinst", "prerm", "postrm"]
CONTROL = """\
Package: valora
Version: {version}
Architecture: {architecture}
Maintainer: The valora authors <valora@localhost>
Installed-Size: {size}
Depends: {depends}, passwd
Recommends: ca-certificates
Section: science
Priority: optional
Description: server of vision-language models with many LoRA adapters
 One large vision-language model with thousands of LoRA adapters, over the
 OpenAI API: different adapters, ranks and task heads in every step of one
 batch. It also makes such adapters from tasks with data. For CPUs.
"""


def own_libraries(machine: Machine, tree: pathlib.Path) -> list[str]:
    """The tree's libraries that no Debian package of the machine has: torch's."""
    folder = pathlib.Path(f"/usr/lib/{machine.name}-linux-gnu")
    return sorted(path.name for path in (tree / LIBRARIES).iterdir() if not machine.file(folder / path.name).exists())


def copy_files(machine: Machine, tree: pathlib.Path, root: pathlib.Path) -> None:
    usr = root / "usr"
    for folder in ("bin", DATA, DOC):
        shutil.copytree(tree / folder, usr / folder, ignore=shutil.ignore_patterns("parts", "common-licenses", "LICENSE"))
    shutil.copytree(tree / DOC / "parts/torch", usr / DOC / "parts/torch")
    shutil.copytree(tree / DOC / "xgrammar", usr / DOC / "xgrammar", dirs_exist_ok=True)
    (usr / LIBRARIES).mkdir(parents=True)
    for name in own_libraries(machine, tree):
        shutil.copy(tree / LIBRARIES / name, usr / LIBRARIES / name)
    (usr / DATA / "valora.spdx.json").unlink()  # it lists the libraries of the tree
    own = ROOT / "share/debian"
    for source, to in ((own / "config.yaml", root / "etc/valora/config.yaml"),
                       (own / "valora.service", usr / "lib/systemd/system/valora.service"),
                       (own / "copyright", usr / DOC / "copyright")):
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, to)
    for source, to in ((tree / "share/man/man1/valora.1", usr / "share/man/man1/valora.1.gz"),
                       (ROOT / "CHANGELOG.md", usr / DOC / "changelog.gz")):
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))
    (usr / DOC / "CHANGELOG.md").unlink()


def binaries_of(root: pathlib.Path) -> list[pathlib.Path]:
    return [root / "usr/bin/valora", *sorted((root / "usr" / LIBRARIES).iterdir())]


def foreign_depends(machine: Machine, root: pathlib.Path) -> str:
    """The packages of the libraries that the binaries name, in at least the versions that they were linked with."""
    named = {name for path in binaries_of(root) for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path))}
    paths = [pathlib.Path(f"/usr/lib/{machine.name}-linux-gnu/{name}") for name in named]
    found = machine.packages(machine.owners(path for path in paths if machine.file(path).exists()).values())
    return ", ".join(f"{package.name} (>= {package.version})" for package in sorted(found.values(), key=lambda package: package.name))


def shlib_depends(root: pathlib.Path, work: pathlib.Path) -> str:
    """What dpkg-shlibdeps says of the program and of libtorch."""
    (work / "debian").mkdir(parents=True, exist_ok=True)
    (work / "debian/control").write_text("Source: valora\n\nPackage: valora\nArchitecture: amd64\n")
    command = ["dpkg-shlibdeps", "-O", "--ignore-missing-info", f"-l{root / 'usr' / LIBRARIES}", *map(str, binaries_of(root))]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"dpkg-shlibdeps failed: {done.stderr.strip()[-2000:]}")
    return done.stdout.strip().removeprefix("shlibs:Depends=")


def files_of(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and "DEBIAN" not in path.relative_to(root).parts)


def write_control(release: Release, root: pathlib.Path, depends: str) -> None:
    control = root / "DEBIAN"
    control.mkdir()
    files = files_of(root)
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    (control / "control").write_text(CONTROL.format(version=release.version, architecture=release.machine.debian, size=size, depends=depends))
    (control / "conffiles").write_text("/etc/valora/config.yaml\n")
    sums = [f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n" for path in files]
    (control / "md5sums").write_text("".join(sums))
    for name in SCRIPTS:
        shutil.copyfile(ROOT / "share/debian" / name, control / name)


def set_modes_and_dates(root: pathlib.Path, epoch: int) -> None:
    for path in [root, *root.rglob("*")]:
        executable = path.is_dir() or path.parent.name == "bin" or path.name in SCRIPTS
        path.chmod(0o755 if executable else 0o644)
        os.utime(path, (epoch, epoch))


def make_deb(release: Release, work: pathlib.Path, output: pathlib.Path) -> pathlib.Path:
    root = work / "deb"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    machine = release.machine
    copy_files(machine, work / "tree", root)
    depends = shlib_depends(root, work / "shlibdeps") if machine == X86_64 else foreign_depends(machine, root)
    write_control(release, root, depends)
    set_modes_and_dates(root, release.epoch)
    to = output / release.debian_package
    run("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", root, to)
    return to
