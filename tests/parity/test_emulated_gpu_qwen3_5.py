"""Qwen3.5 on an emulated GPU: the kernels of gated delta rules, states and their checkpoints in the GPU's pool, in separate launches and
in captured steps, against transformers + PEFT. Requires release 5 or later."""

import itertools
import json
import os
import pathlib

import pytest

import test_qwen3_5
from checkpoints import save_adapter
from pictures import picture
from programs import DEVICE, REPOSITORY, Engine, wait_until_idle
from reference import Reference, expect_same
from releases import NEWEST
from test_emulated_gpu import counted, expect_error_of_the_cpu, expect_the_same_tokens
from test_generate_batching import expect_answers
from test_qwen3_5 import DELTA, LONG, NAMES, ONE, SHARED, TEXT, VISUAL, chats, request_of
from wide import EVERYTHING, sample

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not NEWEST or DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built, or without Qwen3.5")]
adapted = test_qwen3_5.adapted


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))
    monkeypatch.setenv("VALORA_GPU_CAPTURE", "seen")
    monkeypatch.setenv("VALORA_EMULATED_GPUS", "2")


# Of the models, only one has heads of keys that divide among two ranks.
CASES = [*itertools.product(NAMES, ["unmerged", "mixture", "merged"], [1]), *((SHARED, mode, 2) for mode in ("unmerged", "mixture", "merged"))]
CHOSEN = [("qwen35-first-full", "mixture", 1), ("qwen35-text", "merged", 1), (SHARED, "unmerged", 2)]


@pytest.mark.parametrize("adapted, mode, ranks", CASES if EVERYTHING else CHOSEN, indirect=["adapted"])
def test_adapters_and_base_in_one_batch_equal_reference(adapted, models, mode, ranks):
    """Prompts with pictures and without, in chunks beside decodes, with adapters on every linear."""
    name, model, reference, folders = adapted
    with Engine(models[name], device="cuda", mode=mode, max_num_batched_tokens=61, tensor_parallel_size=ranks) as engine:
        for key, folder in folders.items():
            assert engine.load(key, folder)["warnings"] == []
        requests = [request_of(model, messages, *uses, tokens=6) for i, messages in enumerate(chats(name))
                    for uses in ([], ["all"], ["attention", "rates"] if i % 2 else ["delta"])]
        requests[-1]["adapters"][0]["scale"] = 0.5
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer)


@pytest.mark.parametrize("name, budget", sample([(name, budget) for name in NAMES for budget in (1, 7, 16, 50)], 3))
def test_small_steps_carry_the_state(models, references, name, budget):
    model = models.memory[name]
    with Engine(models[name], device="cuda", max_num_batched_tokens=budget, prefix_caching=False) as engine:
        requests = [request_of(model, messages, tokens=6) for messages in chats(name)[:3]]
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(references[name], request, answer)
        wait_until_idle(engine)


@pytest.mark.parametrize("name", sample(NAMES, 2))
def test_cached_prefixes_end_at_state_checkpoints(models, references, name):
    model = models.memory[name]
    with Engine(models[name], device="cuda") as engine:
        def cached(messages):
            request = request_of(model, messages)
            answer = engine.one(request)
            expect_same(references[name], request, answer)
            return answer["usage"]["cached_tokens"], len(answer["prompt_token_ids"])
        for messages in chats(name)[1:]:
            cached(messages)
            again, length = cached(messages)
            assert again == (length - 9) // 16 * 16
            assert cached([*messages, {"role": "assistant", "content": "A dog"}, *TEXT])[0] >= again


@pytest.mark.parametrize("name, dtype, blocks", sample([("qwen35-text", "float32", 16), ("qwen35-tied", "float32", 24),
                                                        ("qwen35-text", "float16", 24)], 2))
def test_memory_limits_change_no_answer(models, name, dtype, blocks):
    """Memory for a few sequences only, in fp32 launch by launch and in fp16 in replayed steps."""
    model = models.memory[name]
    requests = [request_of(model, [{"role": "user", "content": f"Request {i}."}, *TEXT], tokens=70) for i in range(4)]
    with Engine(models[name], device="cuda", dtype=dtype, prefix_caching=False) as engine:
        alone = [engine.one(request) for request in requests]
        size = test_qwen3_5.block_bytes(engine)
    with Engine(models[name], device="cuda", dtype=dtype, pool_memory=size * blocks, max_num_batched_tokens=64) as engine:
        (expect_answers if dtype == "float32" else expect_the_same_tokens)(alone, engine.batch(requests))
        wait_until_idle(engine)
        assert engine.stats()["preemptions"] > 0


@pytest.mark.parametrize("name, dtype, capability", [("qwen35-tied", "bfloat16", 80), ("qwen35-text", "float16", 90),
                                                     *([("qwen35-first-full", "bfloat16", 89)] if EVERYTHING else [])])
def test_16_bit_error_is_that_of_the_cpu(models, tmp_path, name, dtype, capability):
    model = models.memory[name]
    adapter = save_adapter(model, tmp_path / "a", 420, rank=8, targets="all-linear", exclude_modules=["lm_head"])
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    requests = [request_of(model, messages, *["a"] * uses, tokens=1) for messages in chats(name)[:3] for uses in (0, 1)]
    expect_error_of_the_cpu(models[name], adapter, reference, requests, dtype, capability)


@pytest.mark.parametrize("name, mode", sample([("qwen35-tied", "unmerged"), ("qwen35-tied", "mixture"), ("qwen35-text", "merged"),
                                               ("qwen35-text", "unmerged")], 2))
def test_replayed_steps_equal_separate_launches(models, tmp_path, name, mode):
    """Prompts in chunks and beside decodes, cached prefixes, pictures, adapters: the states' addresses come from tables."""
    model = models.memory[name]
    adapters = {"a": save_adapter(model, tmp_path / "a", 421, rank=8, targets="all-linear", exclude_modules=["lm_head"]),
                "b": save_adapter(model, tmp_path / "b", 422, rank=4, targets=DELTA)}
    contents = [[{"role": "user", "content": "a red circle " * (1 + 3 * i) + str(i)}] for i in range(5)]
    if name in VISUAL:
        contents += [ONE, [{"role": "user", "content": [picture(96, 50, 40), "which?"]}]]
    requests = [request_of(model, messages, *[["a"], [], ["b"]][i % 3], tokens=6) for i, messages in enumerate(contents)]
    answers, counts = {}, {}
    for capture in ("none", "seen", "all"):
        report = tmp_path / f"{capture}.json"
        with Engine(models[name], counted(report, capture), dtype="float16", device="cuda", mode=mode, max_num_batched_tokens=48) as engine:
            for key, path in adapters.items():
                engine.load(key, path)
            answers[capture] = [answer for _ in range(3) for answer in engine.batch(requests)]
        counts[capture] = json.loads(report.read_text())
        expect_the_same_tokens(answers["none"], answers[capture])
    assert counts["none"]["replays"] == 0
    assert min(counts["seen"]["replays"], counts["all"]["replays"]) > 10, counts


@pytest.mark.parametrize("options", sample([{"quantization": "int4"}, {"quantization": "int8"}, {"kv_cache_dtype": "int8"},
                                            {"kv_cache_dtype": "fp8"}], 2), ids=lambda options: "-".join(options.values()))
def test_integers_are_as_accurate_as_on_the_cpu(models, tmp_path, options):
    """In fp32, whose integer weights and keys and values are those of the CPU."""
    name = "qwen35-tied"
    model = models.memory[name]
    adapter = save_adapter(model, tmp_path / "a", 423, rank=4, targets=[*DELTA, "q_proj", "down_proj"])
    requests = [request_of(model, messages, *["a"] * uses, tokens=4) for messages in (TEXT, LONG, ONE) for uses in (0, 1)]
    answers = {}
    for device in ("cpu", "cuda"):
        with Engine(models[name], device=device, **options) as engine:
            engine.load("a", adapter)
            answers[device] = engine.batch(requests)
    expect_the_same_tokens(answers["cpu"], answers["cuda"])


def test_reference_kernels_use_those_of_states(models, references):
    """ATen computes the rest."""
    requests = [request_of(models.memory[SHARED], messages, tokens=4) for messages in (LONG, ONE)]
    with Engine(models[SHARED], device="cuda", kernels="reference", max_num_batched_tokens=50) as engine:
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(references[SHARED], request, answer)
