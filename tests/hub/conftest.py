"""A fake hub with the demo's model and an adapter, an environment for each test, and the program."""

import os
import random
import subprocess
import types

import pytest
from fake_hub import BIG_BYTES, FakeHub, Repository

from programs import REPOSITORY, find_program

DEMO = REPOSITORY / "demo"


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="session")
def hub():
    noise = random.Random(1).randbytes(BIG_BYTES)
    model = files_of(DEMO / "model") | {"README.md": b"# demo", "pytorch_model.bin": noise[:4096], "onnx/model.onnx": b"x"}
    shards = {f"model-0000{i}-of-00002.safetensors": noise[i << 20:(i + 1) << 20] for i in (1, 2)}
    index = b'{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}'
    hub = FakeHub({
        "own/demo": Repository(model, revisions=("main", "v1")),
        "own/cats": Repository(files_of(DEMO / "adapters/adapter-1") | {"optimizer.pt": b"x"}, "a" * 40),
        # Not models, but files of their sizes.
        "own/big": Repository({"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors": noise}, "b" * 40),
        "own/shards": Repository({"config.json": b"{}", "tokenizer.json": b"{}", "model.safetensors.index.json": index, **shards,
                                  "model-00003-of-00002.safetensors": b"no shard"}, "d" * 40),
        "own/gated": Repository(model, error="GatedRepo"),
        "own/private": Repository(model, error="RepoNotFound"),
    })
    yield hub
    hub.close()


@pytest.fixture
def home(hub, tmp_path):
    """The user's environment: an empty home, and the fake hub."""
    hub.reset()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING", "TRANSFORMERS", "MODELSCOPE"))}
    environment = kept | {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url}
    environment.pop("XDG_CACHE_HOME", None)
    cache = tmp_path / "hf/hub"

    def start(*arguments, more=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen([find_program("valora"), *map(str, arguments)], env=environment | (more or {}), text=True, **options)

    def run(*arguments, more=None, **options):
        process = start(*arguments, more=more, **options)
        process.out, process.err = process.communicate(timeout=60)
        return process

    return types.SimpleNamespace(start=start, run=run, cache=cache, path=tmp_path, environment=environment,
                                 repository=lambda name: cache / ("models--" + name.replace("/", "--")))
