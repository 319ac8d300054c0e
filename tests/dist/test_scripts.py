"""tools/dist: names, libraries, licences, the list of parts, archives, the image's layout."""

import hashlib
import io
import json
import pathlib
import re
import tarfile

import pytest

import archive
import image
import libraries
import licences
import machines
import names
import sbom

RELEASE = names.Release("1.2.3", "c0ffee" * 6 + "c0ff", 1700000000)
LDD = """\
\tlinux-vdso.so.1 (0x00007f7168083000)
\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f7166898000)
\tlibgomp.so.1 => /somewhere/torch/lib/libgomp.so.1 (0x00007f7151400000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f7168085000)
"""


def test_the_version_is_cmakes():
    assert names.version_of("cmake_minimum_required(VERSION 3.25)\nproject(valora VERSION 4.5.6 LANGUAGES C)\n") == "4.5.6"
    with pytest.raises(ValueError, match="project"):
        names.version_of("project(other VERSION 1.0.0)")
    assert re.fullmatch(r"\d+\.\d+\.\d+", names.this_release().version)


def test_artefacts_carry_the_version():
    assert RELEASE.archive == "valora-1.2.3-linux-x86_64.tar.xz"
    assert RELEASE.wheel == "valora-1.2.3-py3-none-manylinux_2_36_x86_64.whl"
    arm = names.Release("1.2.3", "", 0, machines.MACHINES["aarch64"])
    assert (arm.archive, arm.debian_package) == ("valora-1.2.3-linux-aarch64.tar.xz", "valora_1.2.3_arm64.deb")
    assert RELEASE.debian_package == "valora_1.2.3_amd64.deb"


def test_libraries_are_read_from_ldd():
    assert libraries.needed(LDD) == {"libz.so.1": pathlib.Path("/lib/x86_64-linux-gnu/libz.so.1"),
                                     "libgomp.so.1": pathlib.Path("/somewhere/torch/lib/libgomp.so.1")}
    with pytest.raises(ValueError, match=r"libx\.so"):
        libraries.needed("\tlibx.so => not found\n")


def test_one_openmp_runtime_is_wanted():
    libraries.check_one_openmp(["libgomp.so.1", "libz.so.1", "libompstuff.so"])
    for bad in (["libz.so.1"], ["libgomp.so.1", "libiomp5.so"], ["libgomp.so.1", "libomp.so.5"]):
        with pytest.raises(ValueError, match="OpenMP"):
            libraries.check_one_openmp(bad)


def test_the_c_librarys_owner_is_known():
    """By a path whose package knows it without /usr, as those of before the merge of / and /usr."""
    path = pathlib.Path("/lib/x86_64-linux-gnu/libm.so.6")
    if not path.exists():
        pytest.skip("not a Debian system on x86-64")
    assert machines.X86_64.owners([path, pathlib.Path(__file__)]) == {path: libraries.C_LIBRARY}


def test_licences_named_by_copyright_files():
    text = "Format: https://…\n\nFiles: *\nLicense: GPL-2+\n\nLicense: MIT\n text\n"
    assert licences.declared(text) == ["GPL-2+", "MIT"]
    assert licences.declared("This package was debianized by…\nLicense: x") == []


def test_common_licences_are_copied(tmp_path):
    common = tmp_path / "common"
    common.mkdir()
    (common / "GPL-2").write_text("two")
    (common / "GPL-3").write_text("three")
    licences.copy_common(["see /usr/share/common-licenses/GPL-2.", "nothing"], tmp_path / "to", common)
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["GPL-2"]


def test_the_list_of_parts_names_each_and_its_source():
    own = sbom.Part("valora", "1.2.3", "pkg:generic/valora@1.2.3", "Apache-2.0", ("bin/valora",))
    source = sbom.debian_purl("source", "zlib", "1:1.2.13.dfsg-1")
    zlib = sbom.Part("zlib1g", "1:1.2.13.dfsg-1", sbom.debian_purl("amd64", "zlib1g", "1:1.2.13.dfsg-1"), "NOASSERTION",
                     ("lib/valora/libz.so.1",), f"source: {source}")
    made = sbom.document(RELEASE, own, [zlib])
    assert made["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    packages = {package["name"]: package for package in made["packages"]}
    assert packages["zlib1g"]["externalRefs"][0]["referenceLocator"] == (
        "pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64&distro=debian-12")
    assert "arch=source" in packages["zlib1g"]["comment"] and "libz.so.1" in packages["zlib1g"]["comment"]
    kinds = [(row["relationshipType"], row["relatedSpdxElement"]) for row in made["relationships"]]
    assert kinds == [("DESCRIBES", packages["valora"]["SPDXID"]), ("CONTAINS", packages["zlib1g"]["SPDXID"])]
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]) for package in made["packages"])
    assert made == sbom.document(RELEASE, own, [zlib])


def fake_tree(folder, reverse):
    """The same files, written in another order."""
    files = [("bin/valora", "program"), ("lib/valora/liba.so", "a"), ("share/b", "b")]
    for name, text in reversed(files) if reverse else files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin/valora").chmod(0o700)
    return folder


def test_archives_depend_on_their_files_alone(tmp_path):
    made = []
    for reverse in (False, True):
        out = io.BytesIO()
        archive.write_tar(fake_tree(tmp_path / str(reverse), reverse), "valora-1.2.3", RELEASE.epoch, out)
        made.append(out.getvalue())
    assert made[0] == made[1]
    with tarfile.open(fileobj=io.BytesIO(made[0])) as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries)[0] == "valora-1.2.3" and "valora-1.2.3/share/b" in entries
    program = entries["valora-1.2.3/bin/valora"]
    assert (program.mode, program.uid, program.uname, program.mtime) == (0o755, 0, "root", RELEASE.epoch)
    assert entries["valora-1.2.3/share/b"].mode == 0o644


def test_layers_are_named_by_their_digests(tmp_path):
    tar = tmp_path / "layer.tar"
    with tar.open("wb") as out:
        archive.write_tar(fake_tree(tmp_path / "tree", False), "usr/local", RELEASE.epoch, out)
    plain = hashlib.sha256(tar.read_bytes()).hexdigest()
    layout = image.Layout(tmp_path / "layout")
    descriptor, diff = layout.add_layer(tar)
    assert diff == f"sha256:{plain}"
    blob = layout.blobs / descriptor["digest"].removeprefix("sha256:")
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name and blob.stat().st_size == descriptor["size"]
    config = image.config_of(RELEASE, [diff])
    assert config["rootfs"]["diff_ids"] == [diff] and config["config"]["Labels"]["org.opencontainers.image.version"] == "1.2.3"
    assert json.loads((layout.folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
