"""`valora serve --lora-dir`: a folder of adapters, of which only headers are read at startup."""

import json
import shutil

import pytest

import checkpoints
from serving import MODEL, Server

QUESTION = "What is this?"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("lora_dir")
    base = checkpoints.make_model(MODEL)
    adapters = root / "adapters"
    for seed in range(6):
        checkpoints.save_adapter(base, adapters / f"a{seed}", 90 + seed, rank=4)
    checkpoints.add_head(adapters / "a5", base.config.get_text_config().hidden_size, ["yes", "no"], 5, bias=True)
    # Two that are served by name but have no usable values: one with NaN, one that is removed
    # later.
    shutil.copytree(adapters / "a0", adapters / "nan")
    path = adapters / "nan" / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\xc0\x7f")
    shutil.copytree(adapters / "a0", adapters / "gone")
    # One that can't be served, and two that are not adapters.
    shutil.copytree(adapters / "a0", adapters / "torn")
    path = adapters / "torn" / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    (adapters / "notes").mkdir()
    (adapters / "README").write_text("not an adapter")
    return {"model": checkpoints.save_model(base, root / "model"), "adapters": adapters}


def answer(server, model):
    return server.chat(model, QUESTION)["choices"][0]["message"]["content"]


def test_adapters_of_a_folder_are_served(folders):
    names = [f"a{i}" for i in range(5)]
    at_start = Server({"model": folders["model"]} | {name: folders["adapters"] / name for name in names})
    expected = {name: answer(at_start, name) for name in names}
    assert at_start.stop() == 0
    assert len(set(expected.values())) == len(names)

    server = Server({"model": folders["model"]}, "--lora-dir", folders["adapters"], "--pool-memory", "400k")
    cards = {card["name"]: card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
    assert set(cards) == {*names, "a5", "nan", "gone"}
    assert not any(card["resident"] for name, card in cards.items() if name != "a5")
    shutil.rmtree(folders["adapters"] / "gone")
    for _ in range(2):
        for name in names:
            assert answer(server, name) == expected[name]
        for name, status, words in [("nan", 422, "not finite"), ("gone", 404, "does not exist"), ("torn", 404, "does not exist")]:
            got, text = server.request("POST", "/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": QUESTION}]})
            assert got == status, text
            assert words in json.loads(text)["error"]["message"]
    labels = json.loads(server.request("POST", "/classify", {"model": "a5", "input": QUESTION})[1])
    assert labels["data"][0]["label"] in ("yes", "no")
    assert server.metric("valora:request_adapter_wait_seconds_sum") > 0
    assert server.stop() == 0


def test_missing_folder_is_refused(folders, tmp_path):
    with pytest.raises(AssertionError, match="did not start"):
        Server({"model": folders["model"]}, "--lora-dir", tmp_path / "none")
