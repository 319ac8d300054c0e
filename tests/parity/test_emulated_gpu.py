"""The engine on a GPU that the host emulates: the kernels of GPUs, their tables and plans, paged adapters, merges and moves between
host and device, with ATen's products of CPUs (docs/rooms/emulation.md)."""

import json
import os
import pathlib

import pytest

from checkpoints import save_adapter
from programs import DEVICE, REPOSITORY, Engine, EngineError, token_ids
from reference import Reference, expect_same
from test_generate_modes import Setting, expect_the_same_answers
from test_tensor_parallel import REQUESTS, distance, expect_the_same_from_a_small_pool

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))


@pytest.mark.parametrize("name", ["vl-grouped-tied", "llama3-scaled", "qwen3-biased"])
def test_every_mode_gives_the_references_answers(models, tmp_path, name):
    setting = Setting(name, models.memory[name], models[name], tmp_path, tokens=5)
    setting.requests = setting.requests[::2]
    alone = None
    for mode, options in (("unmerged", {}), ("merged", {}), ("mixture", {"merge": "inplace"})):
        answers, stats = setting.answers(mode, device="cuda", **options)
        for request, answer in zip(setting.requests, answers, strict=True):
            expect_same(setting.reference, request, answer)
        alone = alone or answers
        expect_the_same_answers(alone, answers)
        assert (stats["merges"] == 0) == (mode == "unmerged")


@pytest.mark.parametrize("dtype, capability", [("bfloat16", 80), ("float16", 89)])
def test_tensor_cores_are_as_near(models, tmp_path, dtype, capability):
    """With the memory of blocks of another GPU each."""
    name = "text-grouped-tied"
    memory = models.memory[name]
    adapter = save_adapter(memory, tmp_path / "a", 760, rank=8, targets="all-linear")
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    sampling = {"max_tokens": 1, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.vocab_size}
    requests = [{"messages": [{"role": "user", "content": "a red circle " * length}], "sampling": sampling,
                 "adapters": [{"name": "a"}] * uses} for length in (1, 9) for uses in (0, 1)]
    distances = []
    for device, of_dtype in (("cpu", "bfloat16"), ("cuda", dtype)):
        with Engine(models[name], {"VALORA_EMULATED_GPU": str(capability)}, dtype=of_dtype, device=device) as engine:
            engine.load("a", adapter)
            answers = engine.batch(requests)
        distances.append(sum(distance(reference, request, answer) for request, answer in zip(requests, answers, strict=True)))
    assert 0 < distances[1] <= 1.25 * distances[0], distances


def test_swapped_and_preempted_requests_answer_the_same(models, tmp_path):
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 761, rank=8, targets="all-linear")
    expect_the_same_from_a_small_pool(models[name], adapter, device="cuda")


def test_a_pool_beyond_the_memory_is_refused(models):
    with pytest.raises(EngineError, match="--pool-memory asks for"):
        Engine(models["text-grouped-tied"], {"VALORA_EMULATED_GPU_MEMORY": str(700 << 20)}, device="cuda", pool_memory=1 << 30)


@pytest.mark.parametrize("mode", ["unmerged", "mixture"])
def test_captured_steps_answer_as_others(models, tmp_path, mode):
    """Decode steps that are replayed, of several sizes and adapters, against steps that are not captured: those in float."""
    name = "llama3-scaled"
    report = tmp_path / "report.json"
    adapters = {f"a{rank}": save_adapter(models.memory[name], tmp_path / f"a{rank}", 770 + rank, rank=rank) for rank in (4, 24)}
    uses = [[], ["a4"], ["a24"], ["a4", "a24"]]
    requests = [{"messages": [{"role": "user", "content": "a red circle " * (1 + i) + str(i)}],
                 "adapters": [{"name": use} for use in uses[i % 4]],
                 "sampling": {"max_tokens": 6 + 3 * i, "ignore_eos": True, "temperature": 0, "logprobs": 1}} for i in range(5)]
    answers, counts = {}, {}
    for dtype in ("bfloat16", "float32"):
        with Engine(models[name], {"VALORA_EMULATED_GPU_REPORT": str(report)}, dtype=dtype, device="cuda", mode=mode) as engine:
            for adapter, path in adapters.items():
                engine.load(adapter, path)
            answers[dtype] = [engine.one(requests[0]), *engine.batch(requests)]
        counts[dtype] = json.loads(report.read_text())
    assert counts["bfloat16"]["captures"] > 1 and counts["bfloat16"]["replays"] > 10, counts
    assert counts["float32"]["replays"] == 0 and counts["float32"]["launches"] > counts["bfloat16"]["launches"], counts
    compared = 0
    for rounded, exact in zip(answers["bfloat16"], answers["float32"], strict=True):
        for mine, other in zip(rounded["choices"][0]["tokens"], exact["choices"][0]["tokens"], strict=True):
            assert abs(mine["logprob"] - other["logprob"]) < 0.15
            if mine["id"] != other["id"]:  # a near tie: what follows differs
                break
            compared += 1
    assert compared > 0.6 * sum(len(token_ids(answer)) for answer in answers["float32"])


def test_launches_apart_answer_the_same(models, tmp_path):
    """What is one launch against what VALORA_GPU_SEPARATE takes apart, in steps that are captured and in others, with keys in several parts."""
    name = "llama3-scaled"
    report = tmp_path / "report.json"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 780, rank=8, targets="all-linear")
    requests = [{"messages": [{"role": "user", "content": "a red circle " * length}], "adapters": [{"name": "a"}] * uses,
                 "sampling": {"max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": 4}} for length, uses in ((2, 0), (40, 1))]
    answers, counts = {}, {}
    for apart in ("", "rotation", "merge", "products,rotation,merge"):
        environment = {"VALORA_GPU_SEPARATE": apart, "VALORA_EMULATED_GPU_REPORT": str(report)}
        with Engine(models[name], environment, dtype="bfloat16", device="cuda") as engine:
            engine.load("a", adapter)
            answers[apart] = [[choice["tokens"] for choice in answer["choices"]] for answer in map(engine.one, requests)]
        counts[apart] = json.loads(report.read_text())
        assert counts[apart]["replays"] > 0
    assert answers[""] == answers["rotation"] == answers["merge"]
    assert counts[""]["launches"] < min(counts["rotation"]["launches"], counts["merge"]["launches"])
    assert counts[""]["operations"] == counts["merge"]["operations"] < counts["products,rotation,merge"]["operations"]
    for together, apart in zip(answers[""], answers["products,rotation,merge"], strict=True):
        for mine, other in zip(together[0], apart[0], strict=True):  # other sums of bf16 values
            assert abs(mine["logprob"] - other["logprob"]) < 0.15
            if mine["id"] != other["id"]:
                break


def test_unknown_launches_are_refused(models):
    with pytest.raises(EngineError, match='VALORA_GPU_SEPARATE: "norms" is none of'), \
            Engine(models["llama3-scaled"], {"VALORA_GPU_SEPARATE": "products,norms"}, device="cuda"):
        pass


def counted(report, capture):
    """The environment of an engine whose GPU writes what it did to `report`."""
    return {"VALORA_EMULATED_GPU_REPORT": str(report), "VALORA_GPU_CAPTURE": capture}


def expect_the_same_tokens(alone, answers):
    """Of the same dtype: padding changes the order of few sums, so that only near ties may differ."""
    compared = 0
    for own, answer in zip(alone, answers, strict=True):
        for mine, other in zip(own["choices"][0]["tokens"], answer["choices"][0]["tokens"], strict=True):
            if mine["id"] != other["id"]:
                first, second = mine["top_logprobs"][:2]
                assert first - second < 0.1, (own, answer)
                break
            assert abs(mine["logprob"] - other["logprob"]) < 0.15
            compared += 1
    assert compared >= 0.9 * sum(len(token_ids(own)) for own in alone)


@pytest.mark.parametrize("name, mode", [("vl-grouped-tied", "unmerged"), ("vl-grouped-tied", "mixture"), ("vl-grouped-tied", "merged"),
                                        ("llava-default", "unmerged")])
def test_steps_of_any_shape_are_replayed(models, tmp_path, name, mode):
    """Prompts with and without pictures, in chunks and beside decodes, under adapters, against launches one by one."""
    setting = Setting(name, models.memory[name], models[name], tmp_path, tokens=4)
    answers, counts, steps = {}, {}, {}
    for capture in ("none", "decode", "all"):
        report = tmp_path / f"{capture}.json"
        with Engine(models[name], counted(report, capture), dtype="bfloat16", device="cuda", mode=mode, max_num_batched_tokens=48) as engine:
            for adapter, path in setting.adapters.items():
                engine.load(adapter, path)
            answers[capture] = [answer for _ in range(3) for answer in engine.batch(setting.requests)]
            steps[capture] = engine.stats()["steps"]
        counts[capture] = json.loads(report.read_text())
        expect_the_same_tokens(answers["none"], answers[capture])
    assert counts["none"]["captures"] == counts["none"]["replays"] == 0
    assert counts["all"]["replays"] > counts["decode"]["replays"] + 3, counts
    assert counts["all"]["launches"] / steps["all"] < counts["none"]["launches"] / steps["none"], (counts, steps)


def test_captured_steps_answer_alike_after_preemption(models, tmp_path):
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 762, rank=8, targets="all-linear")
    requests = [request | ({"adapters": [{"name": "a"}]} if i % 3 == 0 else {}) for i, request in enumerate(REQUESTS)]
    with Engine(models[name], counted(tmp_path / "none.json", "none"), dtype="bfloat16", device="cuda") as engine:
        engine.load("a", adapter)
        pool_block, block = (64 << 20) // engine.model["kv_blocks"], 16 * engine.model["kv_token_bytes"]
        alone = [engine.one(request) for request in requests]
    with Engine(models[name], counted(tmp_path / "all.json", "all"), dtype="bfloat16", device="cuda", pool_memory=40 * pool_block,
                swap_space=400 * block, max_num_batched_tokens=64) as engine:
        engine.load("a", adapter)
        for _ in range(2):
            expect_the_same_tokens(alone, engine.batch(requests))
        stats = engine.stats()
    assert stats["preemptions"] > 0
    assert json.loads((tmp_path / "all.json").read_text())["replays"] > 0.8 * stats["steps"]


@pytest.mark.parametrize("fault", ["refuse:60", "memory:90"])
def test_a_step_that_fails_fails_its_requests_alone(models, fault):
    name = "llama3-scaled"
    request = {"messages": [{"role": "user", "content": "a red circle"}],
               "sampling": {"max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": models.memory[name].config.vocab_size}}
    reference = Reference(models[name])
    with Engine(models[name], {"VALORA_EMULATED_GPU_FAULT": fault}, device="cuda") as engine:
        answers = [engine.batch([request])[0] for _ in range(6)]
    assert sum("error" in answer for answer in answers) == 1, answers
    for answer in answers:
        if "error" not in answer:
            expect_same(reference, request, answer)


def test_a_lost_gpu_ends_the_engine(models):
    request = {"messages": [{"role": "user", "content": "a red circle"}], "sampling": {"max_tokens": 6, "ignore_eos": True}}
    with Engine(models["llama3-scaled"], {"VALORA_EMULATED_GPU_FAULT": "lose:60"}, device="cuda") as engine:
        with pytest.raises(EngineError, match="illegal memory access|the device fails|the engine"):
            for _ in range(6):
                engine.one(request)
        with pytest.raises(EngineError, match="the engine has stopped"):
            engine.one(request)
