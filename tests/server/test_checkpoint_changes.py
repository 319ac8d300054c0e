"""A checkpoint whose files change while it is being served."""

import pathlib
import shutil
import subprocess

import pytest
from safetensors.torch import load_file, save_file

from serving import Server, chat_body, image_part, picture, text_part

QUESTION = [image_part(picture(1)), text_part("what is this?")]
SETTINGS = {"bf16": ["--dtype", "bfloat16"], "fp32": ["--dtype", "float32"],
            "reference": ["--dtype", "bfloat16", "--kernels", "reference"]}


@pytest.fixture
def copied(folders, tmp_path):
    shutil.copytree(folders["model"], tmp_path / "model")
    return {"model": str(tmp_path / "model"), "one": folders["one"]}


def start(folders, *options):
    return Server(folders, *options, stderr=subprocess.PIPE)


def weights_of(folders):
    return pathlib.Path(folders["model"], "model.safetensors")


def overwrite(path):
    path.write_bytes(b"\xff" * path.stat().st_size)


def truncate(path):
    with open(path, "r+b") as file:
        file.truncate(0)


@pytest.mark.parametrize("change", [truncate, overwrite])
@pytest.mark.parametrize("setting", SETTINGS)
def test_changed_weight_files_change_no_answer(copied, setting, change):
    if "bfloat16" in SETTINGS[setting]:  # with the same dtype, nothing has to be converted
        tensors = load_file(weights_of(copied))
        save_file({name: tensor.bfloat16() for name, tensor in tensors.items()}, weights_of(copied), {"format": "pt"})
    server = start(copied, *SETTINGS[setting])
    try:
        ask = lambda name: server.chat(name, QUESTION)["choices"]
        before = ask("tiny"), ask("one")
        change(weights_of(copied))
        server.chat("tiny", "something that is not in the cache")
        assert (ask("tiny"), ask("one")) == before
    finally:
        assert server.stop() == 0


# --merge inplace reads the checkpoint again whenever the base weights are restored.
@pytest.mark.parametrize("change", [truncate, overwrite])
def test_unrestorable_base_stops_the_engine_with_the_file_name(copied, change):
    server = start(copied, "--mode", "merged", "--merge", "inplace")
    try:
        server.chat("one", "hello")
        server.chat("tiny", "hello")
        server.chat("one", "hello again")
        change(weights_of(copied))
        for _ in range(2):
            status, text = server.request("POST", "/v1/chat/completions", chat_body("tiny", "hello"))
            assert status in (500, 503) and copied["model"] not in text
        status, text = server.request("GET", "/health")
        assert status == 503
    finally:
        server.process.terminate()
        _, log = server.process.communicate(timeout=60)
    assert f"{weights_of(copied)} was changed while it was in use" in log
    assert "the base model cannot be restored" in log


def test_replaced_files_change_no_answer(copied):
    server = start(copied, "--mode", "merged", "--merge", "inplace")
    try:
        before = server.chat("tiny", "hello")["choices"]
        server.chat("one", "hello")
        other = weights_of(copied).with_suffix(".new")
        other.write_bytes(b"another checkpoint")
        other.rename(weights_of(copied))
        assert server.chat("tiny", "hello")["choices"] == before
    finally:
        assert server.stop() == 0
