"""The engine on a GPU emulated by the host: GPU kernels, their tables and plans, paged adapters, merges and copies between host
and device, with ATen's CPU products (docs/rooms/emulation.md)."""

import json
import os
import pathlib
import shutil

import pytest

from adapted_case import AdaptedCase
from checkpoints import save_adapter
from pictures import picture
from programs import DEVICE, REPOSITORY, Engine, EngineError, token_ids
from quantised import CompressedTensors, with_decoded
from reference import Reference, expect_same, logprob_rows
from test_generate_modes import Setting, expect_the_same_answers
from test_tensor_parallel import REQUESTS, distance, expect_the_same_from_a_small_pool
from wide import EVERYTHING, sample

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")]


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))
    monkeypatch.setenv("VALORA_GPU_CAPTURE", "seen")  # test_captures_ahead.py is about the others


# Of these models, layers have windows, some next to layers without, and pictures attend in both directions.
BOUNDED = ["gemma3", "mistral-windows", *(["gemma3-biased", "gemma3-text", "qwen3-windows", "text-windows"] if EVERYTHING else [])]


# A model of each other family; Qwen 1, whose linears have other names, runs by itself (docs/rooms/emulation.md).
OTHERS = ["text-one-layer", "llama2-biased", "vl25-windows", "llava-default", "mistral-full", "vl3-grouped-tied", "smolvlm-tied",
          "idefics3-text-tiles", "internvl-tied", "next-mistral", "onevision-tied", "pixtral", "mistral3-tied"]


@pytest.mark.parametrize("name", ["vl-grouped-tied", "llama3-scaled", "qwen3-biased", *BOUNDED, *(OTHERS if EVERYTHING else [])])
def test_every_mode_equals_reference(models, tmp_path, name):
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


def expect_error_of_the_cpu(folder, adapter, reference, requests, dtype, capability):
    """On an emulated GPU of this capability, beside bf16 on the CPU. Requests call the adapter "a"."""
    distances = []
    for device, of_dtype in (("cpu", "bfloat16"), ("cuda", dtype)):
        with Engine(folder, {"VALORA_EMULATED_GPU": str(capability)}, dtype=of_dtype, device=device) as engine:
            engine.load("a", adapter)
            answers = engine.batch(requests)
        distances.append(sum(distance(reference, request, answer) for request, answer in zip(requests, answers, strict=True)))
    assert 0 < distances[1] <= 1.25 * distances[0], distances


@pytest.mark.parametrize("name, dtype, capability", [("text-grouped-tied", "bfloat16", 80), ("text-grouped-tied", "float16", 89),
                                                     *((name, "bfloat16", 90) for name in BOUNDED)])
def test_tensor_core_error_is_that_of_the_cpu(models, tmp_path, name, dtype, capability):
    """Each with the block memory of a different GPU."""
    memory = models.memory[name]
    adapter = save_adapter(memory, tmp_path / "a", 760, rank=8, targets="all-linear")
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    sampling = {"max_tokens": 1, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.get_text_config().vocab_size}
    contents = [["a red circle " * length] for length in (1, 9)]
    if reference.family.has_images:
        contents.append([picture(94, 60, 50), "a red circle " * 2, picture(95, 30, 90), "which?"])
    requests = [{"messages": [{"role": "user", "content": content}], "sampling": sampling, "adapters": [{"name": "a"}] * uses}
                for content in contents for uses in (0, 1)]
    expect_error_of_the_cpu(models[name], adapter, reference, requests, dtype, capability)


class Integers(AdaptedCase):
    """A model folder with integer weights, its copy with decoded weights, and adapters."""

    def __init__(self, name, quantiser, models, root):
        self.folder, plain = (shutil.copytree(models[name], root / part) for part in ("quantised", "decoded"))
        with_decoded(plain, quantiser.quantise(self.folder))
        self.reference, memory = Reference(plain), models.memory[name]
        self.adapters = {f"a{i}": save_adapter(memory, root / f"a{i}", 790 + i, rank=rank, targets="all-linear",
                                               exclude_modules=["lm_head"]) for i, rank in enumerate((3, 8))}
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        sampling = {"max_tokens": 5, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.get_text_config().vocab_size,
                    "logit_bias": self.reference.family.no_media_tokens()}
        self.requests = [{"messages": [{"role": "user", "content": "a red circle " * (1 + i)}], "sampling": sampling,
                          "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]}
                         for i, uses in enumerate([[], [(0, 1)], [(1, 1)], [(1, 0.5)], [(0, 1), (1, -1)]])]


@pytest.mark.parametrize("name, quantiser", [("llama3-scaled", CompressedTensors(4, 32, symmetric=False)),
                                             ("text-grouped-tied", CompressedTensors(8, -1))])
def test_integer_weights_match_reference(models, tmp_path, name, quantiser):
    case = Integers(name, quantiser, models, tmp_path)
    for mode in ("unmerged", "mixture"):
        case.expect_same(mode=mode, device="cuda")
    with pytest.raises(EngineError, match="--merge inplace .* integers"):  # the weights stay integers
        Engine(case.folder, mode="merged", merge="inplace", device="cuda")


@pytest.mark.parametrize("name, options", [
    *(("llama3-scaled", options) for options in ({"quantization": "int4"}, {"quantization": "int8"}, {"kv_cache_dtype": "int8"},
                                                 {"kv_cache_dtype": "fp8"}, {"quantization": "int4", "kv_cache_dtype": "int8"})),
    *((name, {"kv_cache_dtype": "int8"}) for name in BOUNDED[1:])], ids=lambda value: value if isinstance(value, str) else "-".join(value.values()))
def test_integers_on_tensor_cores_are_as_accurate(models, tmp_path, name, options):
    """Compares bf16 on the GPU and on the CPU, in captured steps and in others, with fp32 on the CPU."""
    adapter = save_adapter(models.memory[name], tmp_path / "a", 795, rank=8, targets="all-linear")
    vocabulary = models.memory[name].config.get_text_config().vocab_size
    sampling = {"max_tokens": 1, "ignore_eos": True, "temperature": 0, "logprobs": vocabulary}
    requests = [{"messages": [{"role": "user", "content": "a red circle " * length}], "sampling": sampling,
                 "adapters": [{"name": "a"}] * uses} for length in (1, 3, 6, 9, 14, 20, 30) for uses in (0, 1)]
    rows = {}
    for device, dtype in (("cpu", "float32"), ("cpu", "bfloat16"), ("cuda", "bfloat16")):
        with Engine(models[name], device=device, dtype=dtype, **options) as engine:
            engine.load("a", adapter)
            rows[device, dtype] = [logprob_rows(answer)[0] for _ in range(4) for answer in engine.batch(requests)]
    off = {run: sum((row - exact).abs().mean().item() for row, exact in zip(rows[run], rows["cpu", "float32"], strict=True)) for run in rows}
    assert 0 < off["cuda", "bfloat16"] <= 1.25 * off["cpu", "bfloat16"], off


def test_swapping_and_preemption_change_no_answer(models, tmp_path):
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 761, rank=8, targets="all-linear")
    expect_the_same_from_a_small_pool(models[name], adapter, device="cuda")


def test_pool_larger_than_memory_is_refused(models):
    with pytest.raises(EngineError, match="--pool-memory asks for"):
        Engine(models["text-grouped-tied"], {"VALORA_EMULATED_GPU_MEMORY": str(700 << 20)}, device="cuda", pool_memory=1 << 30)


# Heads of 12 are not for tensor cores, and steps without them are not captured.
@pytest.mark.parametrize("name, mode", [("llama3-scaled", "unmerged"), ("llama3-scaled", "mixture"),
                                        *((name, "unmerged") for name in BOUNDED if name != "qwen3-windows")])
def test_captured_steps_equal_eager_ones(models, tmp_path, name, mode):
    """Replayed decode steps of several sizes and adapters, against steps that are not captured, in float."""
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
            if mine["id"] != other["id"]:  # a near tie: later tokens differ
                break
            compared += 1
    assert compared > 0.6 * sum(len(token_ids(answer)) for answer in answers["float32"])


def test_separate_launches_give_the_same_answers(models, tmp_path):
    """Fused launches against those split by VALORA_GPU_SEPARATE, in captured and other steps, with keys in several parts."""
    name = "llama3-scaled"
    report = tmp_path / "report.json"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 780, rank=8, targets="all-linear")
    requests = [{"messages": [{"role": "user", "content": "a red circle " * length}], "adapters": [{"name": "a"}] * uses,
                 "sampling": {"max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": 4}} for length, uses in ((2, 0), (40, 1))]
    answers, counts = {}, {}
    for apart in ("", "rotation", "merge", "activation", "products,rotation,merge"):
        environment = {"VALORA_GPU_SEPARATE": apart, "VALORA_EMULATED_GPU_REPORT": str(report)}
        with Engine(models[name], environment, dtype="bfloat16", device="cuda") as engine:
            engine.load("a", adapter)
            answers[apart] = [[choice["tokens"] for choice in answer["choices"]] for answer in map(engine.one, requests)]
        counts[apart] = json.loads(report.read_text())
        assert counts[apart]["replays"] > 0
    assert answers[""] == answers["rotation"] == answers["merge"] == answers["activation"]
    assert counts[""]["launches"] < min(counts[apart]["launches"] for apart in ("rotation", "merge", "activation"))
    assert counts[""]["operations"] == counts["merge"]["operations"] == counts["activation"]["operations"] < counts["products,rotation,merge"]["operations"]
    for together, apart in zip(answers[""], answers["products,rotation,merge"], strict=True):
        for mine, other in zip(together[0], apart[0], strict=True):  # sums of bf16 values differ
            assert abs(mine["logprob"] - other["logprob"]) < 0.15
            if mine["id"] != other["id"]:
                break


def test_unknown_launches_are_refused(models):
    with pytest.raises(EngineError, match='VALORA_GPU_SEPARATE: "norms" is not one of'), \
            Engine(models["llama3-scaled"], {"VALORA_GPU_SEPARATE": "products,norms"}, device="cuda"):
        pass


def test_mixtures_of_experts_are_refused(models):
    with pytest.raises(EngineError, match="no kernels for GPUs for the mixtures of experts that Qwen3MoeForCausalLM has"), \
            Engine(models["qwen3-moe"], device="cuda"):
        pass


def counted(report, capture):
    """The environment of an engine whose GPU writes a log of its work to `report`."""
    return {"VALORA_EMULATED_GPU_REPORT": str(report), "VALORA_GPU_CAPTURE": capture}


def expect_the_same_tokens(alone, answers):
    """With the same dtype, padding changes the order of few sums, so only near ties may differ. Which of them do depends on times:
    they decide what is captured, and in mixture mode what is merged. Half of the tokens, one answer left out, must be compared."""
    compared, lengths = 0, [len(token_ids(own)) for own in alone]
    for own, answer in zip(alone, answers, strict=True):
        for mine, other in zip(own["choices"][0]["tokens"], answer["choices"][0]["tokens"], strict=True):
            if mine["id"] != other["id"]:
                first, second = mine["top_logprobs"][:2]
                assert first - second < 0.1, (own, answer)
                break
            assert abs(mine["logprob"] - other["logprob"]) < 0.15
            compared += 1
    assert compared >= 0.5 * (sum(lengths) - max(lengths))


@pytest.mark.parametrize("name, mode", sample([("vl-grouped-tied", "mixture"), ("vl-grouped-tied", "unmerged"), ("vl-grouped-tied", "merged"),
                                               ("llava-default", "unmerged")], 2))
def test_steps_of_any_shape_are_replayed(models, tmp_path, name, mode):
    """Prompts with and without pictures, in chunks and alongside decodes, with adapters, against separate launches."""
    setting = Setting(name, models.memory[name], models[name], tmp_path, tokens=4)
    answers, counts, steps = {}, {}, {}
    for capture in ("none", "decode", "seen"):
        report = tmp_path / f"{capture}.json"
        with Engine(models[name], counted(report, capture), dtype="bfloat16", device="cuda", mode=mode, max_num_batched_tokens=48) as engine:
            for adapter, path in setting.adapters.items():
                engine.load(adapter, path)
            answers[capture] = [answer for _ in range(3) for answer in engine.batch(setting.requests)]
            steps[capture] = engine.stats()["steps"]
        counts[capture] = json.loads(report.read_text())
        expect_the_same_tokens(answers["none"], answers[capture])
    assert counts["none"]["captures"] == counts["none"]["replays"] == 0
    # A capture launches its step twice. Which steps are alike, so which are captured and replayed, depends on times.
    assert counts["seen"]["replays"] > counts["decode"]["replays"], counts
    launched = {run: count["launches"] / steps[run] for run, count in counts.items()}
    assert launched["seen"] - 2 * counts["seen"]["captures"] * launched["none"] / steps["seen"] < launched["none"], (counts, steps)


@pytest.mark.parametrize("name", [name for name in BOUNDED if name in ("gemma3", "gemma3-biased")])
def test_pictures_that_attend_in_both_directions_are_replayed(models, tmp_path, name):
    """Prompts one after the other, so that their steps are of one kind, with and without adapters."""
    memory = models.memory[name]
    adapter = save_adapter(memory, tmp_path / "a", 781, rank=8, targets="all-linear", exclude_modules=["lm_head"])
    sampling = {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.get_text_config().vocab_size}
    requests = [{"messages": [{"role": "user", "content": ["See " + "a " * (i % 3), picture(800 + i, 50, 40), "what is it?"]}], "sampling": sampling,
                 "adapters": [{"name": "a"}] * (i % 2)} for i in range(10)]
    answers, counts = {}, {}
    for capture in ("none", "decode", "all"):
        with Engine(models[name], counted(tmp_path / f"{capture}.json", capture), dtype="bfloat16", device="cuda") as engine:
            engine.load("a", adapter)
            answers[capture] = [engine.one(request) for request in requests]
        counts[capture] = json.loads((tmp_path / f"{capture}.json").read_text())
        expect_the_same_tokens(answers["none"], answers[capture])
    assert counts["all"]["replays"] >= counts["decode"]["replays"] + 4, counts


def test_captured_steps_survive_preemption(models, tmp_path):
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 762, rank=8, targets="all-linear")
    requests = [request | ({"adapters": [{"name": "a"}]} if i % 3 == 0 else {}) for i, request in enumerate(REQUESTS)]
    with Engine(models[name], counted(tmp_path / "none.json", "none"), dtype="bfloat16", device="cuda") as engine:
        engine.load("a", adapter)
        pool_block, block = (64 << 20) // engine.model["kv_blocks"], 16 * engine.model["kv_token_bytes"]
        alone = [engine.one(request) for request in requests]
    with Engine(models[name], counted(tmp_path / "seen.json", "seen"), dtype="bfloat16", device="cuda", pool_memory=40 * pool_block,
                swap_space=400 * block, max_num_batched_tokens=64) as engine:
        engine.load("a", adapter)
        for _ in range(2):
            expect_the_same_tokens(alone, engine.batch(requests))
        stats = engine.stats()
    assert stats["preemptions"] > 0
    assert json.loads((tmp_path / "seen.json").read_text())["replays"] > 0.8 * stats["steps"]


@pytest.mark.parametrize("fault", ["refuse:60", "memory:90"])
def test_failed_step_fails_only_its_requests(models, fault):
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


def test_lost_gpu_stops_the_engine(models):
    request = {"messages": [{"role": "user", "content": "a red circle"}], "sampling": {"max_tokens": 6, "ignore_eos": True}}
    with Engine(models["llama3-scaled"], {"VALORA_EMULATED_GPU_FAULT": "lose:60"}, device="cuda") as engine:
        with pytest.raises(EngineError, match="illegal memory access|the device fails|the engine"):
            for _ in range(6):
                engine.one(request)
        with pytest.raises(EngineError, match="the engine has stopped"):
            engine.one(request)
