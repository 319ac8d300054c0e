"""Tokens sampled from the GPU's summary of its logits, against those sampled from whole rows, on the GPU emulated by the
host (docs/rooms/emulation.md): every setting, with the same seeds."""

import itertools
import json
import os
import pathlib

import pytest

from checkpoints import save_adapter
from programs import DEVICE, REPOSITORY, Engine, token_ids

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")]

DRAWS = [{"temperature": 0}, {"temperature": 1}, {"temperature": 0.7, "top_p": 0.9}, {"temperature": 1.2, "top_k": 5},
         {"temperature": 0.8, "top_k": 40, "top_p": 0.8}, {"temperature": 1, "min_p": 0.2}, {"temperature": 1.5, "top_p": 0.999}]
CHANGES = [{}, {"repetition_penalty": 1.3}, {"presence_penalty": 0.7, "frequency_penalty": 0.4},
           {"logit_bias": [[7, 3.5], [20, -100], [41, 2]], "bad_words": ["a", "red circle"]}, {"min_tokens": 4, "ignore_eos": False},
           {"allowed_token_ids": list(range(3, 60))}]
REPORTS = [{}, {"logprobs": 0}, {"logprobs": 5}]


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))
    monkeypatch.setenv("VALORA_GPU_CAPTURE", "seen")  # test_captures_ahead.py is about the others


def requests_of_every_setting():
    requests = []
    for seed, (draw, change) in enumerate(itertools.product(DRAWS, CHANGES)):
        sampling = {"max_tokens": 6, "ignore_eos": True, "seed": seed} | draw | change | REPORTS[(seed + seed // 6) % 3]
        if seed % 5 == 0:
            sampling["n"] = 2
        request = {"messages": [{"role": "user", "content": "a red circle " * (1 + seed % 3)}], "sampling": sampling}
        if seed % 4 == 0:
            request["adapters"] = [{"name": "a"}]
        requests.append(request)
        if seed % 2 == 0 and "allowed_token_ids" not in change and "bad_words" not in change:
            requests.append(request | {"choice": ["yes, the first", "yes, the second one", " no"]})
    return requests


def expect_the_same(mine, other, tolerance):
    assert ("error" in mine) == ("error" in other), (mine, other)
    if "error" in mine:
        assert mine["error"] == other["error"]
        return
    assert len(mine["choices"]) == len(other["choices"])
    for a, b in zip(mine["choices"], other["choices"], strict=True):
        assert (a["text"], a["finish_reason"]) == (b["text"], b["finish_reason"])
        assert [t["id"] for t in a["tokens"]] == [t["id"] for t in b["tokens"]]
        for t, u in zip(a["tokens"], b["tokens"], strict=True):
            assert t.get("top_ids") == u.get("top_ids")
            for p, q in zip([t["logprob"], *t.get("top_logprobs", [])], [u["logprob"], *u.get("top_logprobs", [])], strict=True):
                assert abs(p - q) <= tolerance, (t, u)


def test_every_setting_equals_sampling_from_whole_rows(models, tmp_path):
    """Logits differ in their last bits between batches on one device, and more between devices."""
    name = "text-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 780, rank=4, targets="all-linear")
    requests = requests_of_every_setting()
    answers = []
    for device, environment in (("cuda", {}), ("cuda", {"VALORA_GPU_SAMPLING": "0"}), ("cpu", {})):
        with Engine(models[name], environment, device=device, max_num_seqs=24) as engine:
            engine.load("a", adapter)
            answers.append(engine.batch(requests))
    in_part, whole, cpu = answers
    assert sum("error" not in answer for answer in in_part) > 0.9 * len(requests), [a for a in in_part if "error" in a][:3]
    for mine, other in zip(in_part, whole, strict=True):
        expect_the_same(mine, other, 1e-5)
    for mine, other in zip(in_part, cpu, strict=True):
        expect_the_same(mine, other, 1e-4)


def test_rows_stay_on_the_gpu(models, tmp_path):
    """For greedy answers, with or without penalties, little except the tokens is copied."""
    name = "text-grouped-tied"
    report = tmp_path / "report.json"
    copied, answers = {}, {}
    requests = [{"messages": [{"role": "user", "content": f"a red circle {i}"}],
                 "sampling": {"max_tokens": 20, "ignore_eos": True, "temperature": 0, "frequency_penalty": 0.1 * (i % 2)}}
                for i in range(6)]
    for switch in ("0", "1"):
        environment = {"VALORA_EMULATED_GPU_REPORT": str(report), "VALORA_GPU_SAMPLING": switch}
        with Engine(models[name], environment, device="cuda") as engine:
            answers[switch] = [token_ids(answer) for answer in engine.batch(requests)]
        copied[switch] = json.loads(report.read_text())["bytes_to_host"]
    assert answers["0"] == answers["1"]
    row = 4 * models.memory[name].config.vocab_size
    assert copied["0"] >= 6 * 20 * row
    assert copied["1"] <= copied["0"] - 6 * 20 * (row - 64 - 20 * 4), copied
