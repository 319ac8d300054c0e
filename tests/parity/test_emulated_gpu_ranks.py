"""Ranks on several emulated GPUs, each with its own memory; the host computes the collectives instead of NCCL. The answers must be
those of transformers + PEFT, and of one GPU."""

import json
import os
import pathlib

import pytest

from checkpoints import save_adapter
from programs import DEVICE, REPOSITORY, Engine, EngineError, wait_until_idle
from reference import Reference, expect_same
from test_emulated_gpu import expect_the_same_tokens
from test_generate_modes import Setting, expect_the_same_answers
from test_llava_next import request_of
from test_qwen1 import ADAPTERS as QWEN1_ADAPTERS
from test_qwen1 import ONE, TEXT
from test_tensor_parallel import REQUESTS, expect_the_same_from_a_small_pool
from wide import EVERYTHING, sample

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")]
# The last model has visual embeddings for later layers.
RANKS = [("vl-grouped-tied", 2), ("llama3-scaled", 4), ("qwen3-biased", 2), ("vl3-grouped-tied", 2)]


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))
    monkeypatch.setenv("VALORA_GPU_CAPTURE", "seen")  # test_captures_ahead.py is about the others
    monkeypatch.setenv("VALORA_EMULATED_GPUS", "4")


@pytest.mark.parametrize("name, ranks", sample(RANKS, 3))
def test_every_mode_matches_one_gpu(models, tmp_path, name, ranks):
    setting = Setting(name, models.memory[name], models[name], tmp_path, tokens=5)
    setting.requests = setting.requests[::2]
    alone = setting.answers("unmerged", device="cuda")[0]
    for mode, options in (("unmerged", {}), ("merged", {}), ("mixture", {"merge": "inplace"})):
        answers, stats = setting.answers(mode, device="cuda", tensor_parallel_size=ranks, **options)
        for request, answer in zip(setting.requests, answers, strict=True):
            expect_same(setting.reference, request, answer)
        expect_the_same_answers(alone, answers)
        assert (stats["merges"] == 0) == (mode == "unmerged")
        assert stats["collectives"] > 0


@pytest.mark.parametrize("mode, ranks", [("unmerged", 2), ("merged", 4)])
def test_fused_qkv_linear(models, tmp_path, mode, ranks):
    name = "qwen1-vl"
    reference = Reference(models[name])
    adapter = save_adapter(models.memory[name], tmp_path / "a", 790, **QWEN1_ADAPTERS["published"])
    reference.load_adapter("a", adapter)
    with Engine(models[name], device="cuda", mode=mode, tensor_parallel_size=ranks) as engine:
        engine.load("a", adapter)
        requests = [request_of(models.memory[name], chat, *uses) for chat in (TEXT, ONE) for uses in ([], ["a"])]
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer)


def test_swapping_and_preemption_keep_answers(models, tmp_path):
    """A swapped block must be restored on both GPUs."""
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 791, rank=8, targets="all-linear")
    expect_the_same_from_a_small_pool(models[name], adapter, device="cuda", tensor_parallel_size=2)


@pytest.mark.parametrize("name, mode", sample([("vl-grouped-tied", "unmerged"), ("vl-grouped-tied", "mixture"), ("llama3-scaled", "merged")], 2))
def test_steps_are_captured_on_all_ranks(models, tmp_path, name, mode):
    """A captured step includes its collectives, which every replay runs again."""
    setting = Setting(name, models.memory[name], models[name], tmp_path, tokens=4)
    answers, counts, collectives = {}, {}, {}
    for capture in ("none", "seen"):
        report = tmp_path / f"{capture}.json"
        environment = {"VALORA_EMULATED_GPU_REPORT": str(report), "VALORA_GPU_CAPTURE": capture}
        with Engine(models[name], environment, dtype="bfloat16", device="cuda", mode=mode, max_num_batched_tokens=48,
                    tensor_parallel_size=2) as engine:
            for adapter, path in setting.adapters.items():
                engine.load(adapter, path)
            answers[capture] = [answer for _ in range(3) for answer in engine.batch(setting.requests)]
            collectives[capture] = engine.stats()["collectives"] / engine.stats()["steps"]
        counts[capture] = json.loads(report.read_text())
    expect_the_same_tokens(answers["none"], answers["seen"])
    assert counts["none"]["replays"] == 0
    assert counts["seen"]["replays"] > 10 and counts["seen"]["captures"] % 2 == 0, counts
    # Capturing a step runs it two more times.
    assert 0.9 * collectives["none"] < collectives["seen"] < 3 * collectives["none"]


def test_step_is_captured_on_all_ranks_or_none(models, tmp_path):
    """Where one rank has no memory for the graph, the others do not replay theirs; all try again after the same pause."""
    request = {"tokens": list(range(10, 21)), "sampling": {"max_tokens": 12, "ignore_eos": True, "temperature": 0, "logprobs": 2}}
    pause = request | {"sampling": request["sampling"] | {"max_tokens": 500}}

    def served(requests, fault):
        report = tmp_path / f"{len(requests)}{len(fault)}.json"
        environment = {"VALORA_EMULATED_GPU_REPORT": str(report), "VALORA_GPU_CAPTURE": "seen"} | fault
        with Engine(models["llama3-scaled"], environment, dtype="bfloat16", device="cuda", tensor_parallel_size=2) as engine:
            answers = [engine.one(asked) for asked in requests]
        return [answer for asked, answer in zip(requests, answers, strict=True) if asked is request], json.loads(report.read_text())

    for requests, again in [([request] * 3, False)] + ([([request, pause, pause, request], True)] if EVERYTHING else []):
        answers, counts = served(requests, {"VALORA_EMULATED_GPU_FAULT": "graph:2"})
        expected, without = served(requests, {})
        expect_the_same_tokens(expected, answers)
        assert without["replays"] > 0
        assert (counts["replays"] > 0) == again, counts
        assert counts["captures"] % 2 == 1, "one graph had no memory"


def test_bytes_between_ranks(models):
    """Counts two all-reduces per layer, the broadcast of rank 0's embeddings, and the gathered parts of the logits."""
    name, ranks = "text-grouped-tied", 2
    text = models.memory[name].config.get_text_config()
    request = {"tokens": list(range(10, 31)), "sampling": {"max_tokens": 9, "ignore_eos": True, "temperature": 0}}
    with Engine(models[name], device="cuda", tensor_parallel_size=ranks) as engine:
        engine.one(request)
        wait_until_idle(engine)
        moved = engine.stats()["collective_bytes"]
    rows = len(request["tokens"]) + 9 - 1
    sums = 2 * text.num_hidden_layers * rows * text.hidden_size * 2 * (ranks - 1)
    logits = 9 * (text.vocab_size - text.vocab_size // ranks)
    assert moved == 4 * (sums + logits + rows * text.hidden_size * (ranks - 1))


def test_more_ranks_than_gpus_are_refused(models):
    with pytest.raises(EngineError, match="each rank has a GPU, and 1 is visible"):
        Engine(models["llama3-scaled"], {"VALORA_EMULATED_GPUS": "1"}, device="cuda", tensor_parallel_size=2)


@pytest.mark.parametrize("fault", ["refuse:90", "memory:260", "lose:90"])
def test_failing_rank_stops_engine(models, fault):
    """The state of the other ranks is then unknown, so no later request is answered."""
    request = {"messages": [{"role": "user", "content": "a red circle"}], "sampling": {"max_tokens": 6, "ignore_eos": True}}
    with Engine(models["llama3-scaled"], {"VALORA_EMULATED_GPU_FAULT": fault}, device="cuda", tensor_parallel_size=2) as engine:
        with pytest.raises(EngineError, match="rank|the engine"):
            for _ in range(12):
                engine.one(request)
        with pytest.raises(EngineError, match="the engine has stopped"):
            engine.one(request)


def test_memory_of_each_gpu_bounds_the_pool(models):
    """The total pool is that of the GPU with the least memory, times the number of ranks."""
    name = "text-grouped-tied"
    environment = {"VALORA_EMULATED_GPU_MEMORY": str(2 << 30)}
    request = REQUESTS[2] | {"sampling": {"max_tokens": 4, "temperature": 0, "ignore_eos": True,
                                          "logprobs": models.memory[name].config.vocab_size}}
    with pytest.raises(EngineError, match="--pool-memory asks for"):
        Engine(models[name], environment, device="cuda", pool_memory=3 << 29)
    with Engine(models[name], environment, device="cuda", pool_memory=3 << 29, tensor_parallel_size=2) as engine:
        expect_same(Reference(models[name]), request, engine.one(request))
