"""Folders of adapters that are written while they are served, and values that training does not leave."""

import json
import pathlib
import random
import shutil
import subprocess
import threading
import time

import pytest
from safetensors.numpy import load_file, save_file

import checkpoints
from programs import find_program
from serving import MODEL, Server, chat_body

FILE = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Two adapters whose files have the same size."""
    root, base = tmp_path_factory.mktemp("versions"), checkpoints.make_model(MODEL)
    return [checkpoints.save_adapter(base, root / str(seed), seed, rank=8) for seed in (1, 2)]


@pytest.fixture(scope="module")
def hidden():
    return checkpoints.make_model(MODEL).config.get_text_config().hidden_size


def start(folders, *options):
    return Server({"model": folders["model"]}, "--allow-runtime-lora-updating", *options)


def load(server, name, folder, **fields):
    return server.request("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)} | fields)


def answer(server, name):
    return server.chat(name, "What is it?", max_tokens=12)["choices"][0]["message"]["content"]


def rewrite(path, data, pause):
    """Within the file, piece by piece, as a program that copies over a network."""
    with open(path, "r+b", buffering=0) as file:
        for at in range(0, len(data), len(data) // 12):
            file.write(data[at:at + len(data) // 12])
            time.sleep(pause)


def zeros(folder, wanted):
    tensors = load_file(folder / FILE)
    save_file({name: tensor * 0 if wanted(name) else tensor for name, tensor in tensors.items()}, folder / FILE)


@pytest.mark.parametrize("lazy", [False, True])
def test_no_answer_mixes_two_versions_of_a_file(folders, versions, tmp_path, lazy):
    served = pathlib.Path(shutil.copytree(versions[0], tmp_path / "served"))
    data = [(version / FILE).read_bytes() for version in versions]
    server, stop = start(folders), threading.Event()

    def write():
        order = random.Random(1)
        while not stop.is_set():
            for content in reversed(data):
                rewrite(served / FILE, content, order.choice([0, 0.002, 0.01]))
                time.sleep(order.choice([0, 0.01, 0.4]))

    writer = threading.Thread(target=write)
    try:
        for name, version in zip("ab", versions):
            assert load(server, name, version)[0] == 200
        whole = {answer(server, "a"), answer(server, "b")}
        assert len(whole) == 2
        writer.start()
        seen = []
        for _ in range(24):
            status, text = load(server, "c", served, load_inplace=True, lazy=lazy)
            if status != 200:
                assert status == 400 and "was changed while it was read" in text
                continue
            status, text = server.request("POST", "/v1/chat/completions", chat_body("c", "What is it?", max_tokens=12))
            if status != 200:  # the values of a lazy adapter are read when it is asked
                assert lazy and status == 409 and "change" in text, text
                continue
            seen.append(json.loads(text)["choices"][0]["message"]["content"])
            assert seen[-1] in whole
        assert len(seen) > 2
    finally:
        stop.set()
        writer.join()
        assert server.stop() == 0


def test_incomplete_copy_is_named_and_not_remembered(folders, versions, tmp_path):
    (tmp_path / "late").mkdir()
    late = tmp_path / "late"
    shutil.copy(versions[0] / "adapter_config.json", late)
    data = (versions[0] / FILE).read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:header])
    half = header + (len(data) - header) // 2
    (late / FILE).write_bytes(data[:half] + bytes(len(data) - half))
    first = min((entry["data_offsets"][0], name) for name, entry in entries.items()
                if "lora_A" in name and header + entry["data_offsets"][0] >= half)[1]
    words = f'tensor "{first}"'
    server = start(folders, "--lora-resolver-dir", str(tmp_path))
    try:
        incomplete = answer(server, "late")
        cards = {card["name"]: card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
        assert any(words in text and "may be incomplete" in text for text in cards["late"]["warnings"])
        status, text = load(server, "again", late)
        assert status == 200 and words in text and "may be incomplete" in text
        report = subprocess.run([find_program("valora"), "inspect", late, "--model", folders["model"]], text=True, capture_output=True)
        assert words in report.stdout and "may be incomplete" in report.stdout
        assert load(server, "whole", versions[0])[0] == 200
        with open(late / FILE, "r+b") as file:
            file.seek(half)
            file.write(data[half:])
        assert answer(server, "late") == answer(server, "whole") != incomplete
        cards = {card["name"]: card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
        assert cards["late"]["warnings"] == []
        # A folder that can no longer be served is not asked under its old content.
        (late / FILE).write_bytes(data[:half])
        status, text = server.request("POST", "/v1/chat/completions", chat_body("late", "What is it?"))
        assert status == 400 and "can't be loaded" in text and str(tmp_path) not in text
        (late / FILE).write_bytes(data)
        assert answer(server, "late") == answer(server, "whole")
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("dead", ["alpha", "b"])
def test_dead_adapter_is_served_with_a_warning(folders, versions, tmp_path, dead):
    folder = pathlib.Path(shutil.copytree(versions[0], tmp_path / "dead"))
    if dead == "b":
        zeros(folder, lambda name: "lora_B" in name)
    else:
        config = json.loads((folder / "adapter_config.json").read_text()) | {"lora_alpha": 0}
        (folder / "adapter_config.json").write_text(json.dumps(config))
    words = {"alpha": "lora_alpha is 0", "b": "every lora_B is all zeros"}[dead]
    server = start(folders)
    try:
        status, text = load(server, "dead", folder)
        assert status == 200 and text.splitlines()[0].endswith("added successfully.") and words in text.splitlines()[1]
        card, = json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]
        assert any(words in text for text in card["warnings"])
        assert answer(server, "dead") == answer(server, "tiny")
    finally:
        assert server.stop() == 0
    report = subprocess.run([find_program("valora"), "inspect", folder, "--json"], text=True, capture_output=True)
    assert any(words in text for text in json.loads(report.stdout)["warnings"])


def test_values_that_overflow_fail_only_their_requests(folders, versions, tmp_path):
    huge = pathlib.Path(shutil.copytree(versions[0], tmp_path / "huge"))
    tensors = load_file(huge / FILE)
    save_file({name: tensor * 0 + 1e38 for name, tensor in tensors.items()}, huge / FILE)
    beyond = pathlib.Path(shutil.copytree(versions[0], tmp_path / "beyond"))
    save_file({name: tensor * 0 + 3.4e38 for name, tensor in tensors.items()}, beyond / FILE)
    server = start(folders, "--dtype", "bfloat16", "--max-num-seqs", "8")
    try:
        assert load(server, "fine", versions[1])[0] == 200
        before = answer(server, "tiny"), answer(server, "fine")
        status, text = load(server, "beyond", beyond)
        assert status == 422 and "are infinite in bfloat16" in text and "lora_A of" in text
        assert load(server, "huge", huge)[0] == 200
        answers, statuses = [], []

        def flood():
            for _ in range(6):
                statuses.append(server.request("POST", "/v1/chat/completions", chat_body("huge", "What is it?"))
                                [:2])

        def others():
            for _ in range(6):
                answers.append((answer(server, "tiny"), answer(server, "fine")))

        threads = [threading.Thread(target=work) for work in (flood, flood, others)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [before] * 6
        for status, text in statuses:
            assert status == 422 and "with the adapter `huge`" in text
        status, text = server.request("POST", "/v1/embeddings", {"model": "huge", "input": "x"})
        assert status == 422 and "with the adapter `huge`" in text
    finally:
        assert server.stop() == 0


def test_names_with_the_same_head_share_it(folders, versions, hidden, tmp_path):
    labels = [f"label {i}" for i in range(3000)]
    folder = pathlib.Path(shutil.copytree(versions[0], tmp_path / "headed"))
    checkpoints.add_head(folder, hidden, labels, 5, bias=True)
    server = start(folders)
    try:
        def heads():
            return json.loads(server.request("GET", "/v1/stats")[1])["memory"]["heads"]

        assert heads()["bytes"] == 0 < heads()["limit"]
        assert load(server, "n0", folder)[0] == 200
        one = heads()["bytes"]
        assert one > 4 * len(labels) * hidden
        for i in range(1, 12):
            assert load(server, f"n{i}", folder)[0] == 200
        assert heads()["bytes"] == one
        assert server.metric("valora:head_bytes") == one + heads()["limit"]
        for path in ("/v1/models", "/v1/lora_adapters"):
            assert "label 7" not in (text := server.request("GET", path)[1]) and '"num_labels":3000' in text
        assert json.loads(server.request("GET", "/v1/models/n3")[1])["heads"][0]["labels"] == labels
        for i in range(12):
            assert server.request("POST", "/v1/unload_lora_adapter", {"lora_name": f"n{i}"})[0] == 200
        server.wait_until(lambda: heads()["bytes"] == 0, "the head is gone")
    finally:
        assert server.stop() == 0
