"""Names are loaded into Hugging Face's cache in its own layout, and found there: by us after huggingface_hub, and by
huggingface_hub after us."""

import json
import os
import pathlib
import pty
import shutil

import huggingface_hub
import huggingface_hub.constants
import pytest

from programs import REPOSITORY

NEEDED = {"chat_template.json", "config.json", "generation_config.json", "model.safetensors", "preprocessor_config.json",
          "tokenizer.json", "tokenizer_config.json", "video_preprocessor_config.json"}


@pytest.fixture(autouse=True)
def plain_http(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)


def test_model_is_loaded_once_and_huggingface_hub_finds_it(hub, home):
    first = home.run("inspect", "own/demo", "--json", more={"HF_TOKEN": "hf_secret"})
    assert first.returncode == 0, first.err
    for words in ("own/demo (cccccccccccc): 8 files, 7.8 MiB", "7.7 MiB of weights", "free"):
        assert words in first.err
    assert "hf_secret" not in first.out + first.err
    assert {request["token"] for request in hub.requests if not request["cdn"]} == {"Bearer hf_secret"}
    assert [request["token"] for request in hub.from_cdn()] == [None]
    folder = json.loads(first.out)["path"]

    hub.reset()
    second = home.run("inspect", "own/demo", "--json")
    assert (second.returncode, second.out, hub.requests) == (0, first.out, [])

    assert huggingface_hub.snapshot_download("own/demo", cache_dir=home.cache, local_files_only=True) == folder
    for file in NEEDED:
        path = huggingface_hub.hf_hub_download("own/demo", file, cache_dir=home.cache, local_files_only=True)
        assert pathlib.Path(path).read_bytes() == hub.repositories["own/demo"].files[file]
    scan = huggingface_hub.scan_cache_dir(home.cache)
    assert not scan.warnings
    (repository,) = scan.repos
    (revision,) = repository.revisions
    assert repository.repo_id == "own/demo" and set(revision.refs) == {"main"}
    assert {file.file_name for file in revision.files} == NEEDED

    # It goes on with our files, and loads what only it wants.
    hub.reset()
    huggingface_hub.snapshot_download("own/demo", cache_dir=home.cache, endpoint=hub.url)
    assert not [request for request in hub.requests if "safetensors" in request["path"]]
    assert home.run("inspect", "own/demo", more={"HF_HUB_OFFLINE": "1"}).returncode == 0


def test_cache_of_huggingface_hub_is_read(hub, home):
    for name in ("own/demo", "own/cats"):
        huggingface_hub.snapshot_download(name, cache_dir=home.cache, endpoint=hub.url)
    hub.reset()
    done = home.run("inspect", "own/cats", "--model", "own/demo", "--json", more={"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.err + done.out
    assert json.loads(done.out)["problems"] == [] and hub.requests == []


def test_part_of_a_model_is_completed(hub, home):
    for file in ("config.json", "tokenizer.json"):
        huggingface_hub.hf_hub_download("own/demo", file, cache_dir=home.cache, endpoint=hub.url)
    offline = home.run("inspect", "own/demo", "--no-download")
    assert offline.returncode == 1 and "only in part in the cache" in offline.err and "--no-download forbids" in offline.err
    hub.reset()
    assert home.run("inspect", "own/demo").returncode == 0
    loaded = {request["path"].rsplit("/", 1)[1] for request in hub.requests if "/resolve/" in request["path"]}
    assert loaded == NEEDED - {"config.json", "tokenizer.json"}


def test_revision_and_another_cache(hub, home):
    done = home.run("inspect", "own/demo", "--revision", "v1", "--download-dir", home.path / "other")
    assert done.returncode == 0, done.err
    references = home.path / "other/models--own--demo/refs"
    assert (references / "v1").read_text() == "c" * 40 and not (references / "main").exists()
    two = home.run("inspect", "own/demo@main", "--revision", "v1")
    assert two.returncode == 1 and "name two revisions" in two.err
    commit = home.run("inspect", f"own/demo@{'c' * 40}", "--download-dir", home.path / "other")
    assert commit.returncode == 0 and [path.name for path in references.iterdir()] == ["v1"]


def test_shards_of_the_index_are_loaded(hub, home):
    home.run("inspect", "own/shards")  # its weights are noise
    (snapshot,) = (home.repository("own/shards") / "snapshots").iterdir()
    files = {path.name: path.read_bytes() for path in snapshot.iterdir()}
    expected = dict(hub.repositories["own/shards"].files)
    del expected["model-00003-of-00002.safetensors"]
    assert files == expected


def test_list_without_sizes_and_hashes_asks_for_each_file(hub, home):
    hub.reset(no_blobs=True)
    assert home.run("inspect", "own/cats").returncode == 0
    asked = [request["path"].rsplit("/", 1)[1] for request in hub.requests if request["method"] == "HEAD"]
    assert sorted(asked) == ["adapter_config.json", "adapter_model.safetensors", "valora.json"]


def test_modelscope_cache_is_read(hub, home):
    folder = home.path / ".cache/modelscope/hub/models/own/de___mo"
    shutil.copytree(REPOSITORY / "demo/model", folder)
    done = home.run("inspect", "own/de.mo", "--json")
    assert done.returncode == 0 and json.loads(done.out)["path"] == str(folder) and hub.requests == []


def test_terminal_shows_bytes_and_rate(hub, home):
    hub.reset(rate=8 << 20)
    ours, theirs = pty.openpty()
    process = home.start("inspect", "own/big", stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the program has ended
            break
        shown += piece
    os.close(ours)
    process.communicate()
    assert b"/20.0 MiB  model.safetensors" in shown and b"MiB/s" in shown and b"[#" in shown
