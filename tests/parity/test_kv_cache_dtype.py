"""The KV cache in 8 bits: answers depend only on the request, and are close to those with an unrounded cache (fp32)."""

import statistics

import pytest

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, inspect, token_ids, wait_until_idle

NAME = "vl-grouped-tied"
FORMATS = ["int8", "fp8"]
LENGTH = 48

WORDS = "the image shows a red circle left of two small squares "
# Equal beginnings, so that there are prefix cache hits.
REQUESTS = [{"messages": [{"role": "user", "content": [WORDS * (i % 3), *([picture(60, 90, 60)] if i % 4 == 0 else []), f"Number {i}."]}],
             "sampling": {"max_tokens": LENGTH, "ignore_eos": True, "temperature": 0, "logprobs": 2}} for i in range(12)]


def firm(answer):
    """The tokens before the first choice that could depend on the order of sums, which changes a key that lies between two 8-bit
    numbers."""
    tokens = answer["choices"][0]["tokens"]
    close = [i for i, token in enumerate(tokens) if token["top_logprobs"][0] - token["top_logprobs"][1] < 5e-3]
    return token_ids(answer)[:min(close, default=len(tokens))]


def expect_same_answers(alone, answers):
    for own, answer in zip(alone, answers, strict=True):
        assert token_ids(answer)[:len(firm(own))] == firm(own)
    assert sum(len(firm(own)) for own in alone) >= 0.7 * LENGTH * len(alone)


@pytest.mark.parametrize("kv", FORMATS)
def test_answers_do_not_depend_on_chunks_prefixes_preemption_and_swapping(models, kv):
    options = {"kv_cache_dtype": kv, "pool_memory": 4 << 20}
    with Engine(models[NAME], prefix_caching=False, **options) as engine:
        assert engine.model["kv_dtype"] == kv
        blocks, token_bytes = engine.model["kv_blocks"], engine.model["kv_token_bytes"]
        alone = [engine.one(request) for request in REQUESTS]
    with Engine(models[NAME]) as engine:
        assert engine.model["kv_dtype"] == "float32"
        assert engine.model["kv_token_bytes"] > 3 * token_bytes
    with Engine(models[NAME], max_num_batched_tokens=7, prefix_caching=False, **options) as engine:
        expect_same_answers(alone, engine.batch(REQUESTS))
    with Engine(models[NAME], **options) as engine:
        for _ in range(2):
            expect_same_answers(alone, engine.batch(REQUESTS))
        assert engine.stats()["prefix_hits"] > 0
    # Memory for only a few requests.
    block = options["pool_memory"] // blocks
    with Engine(models[NAME], **options | {"pool_memory": 16 * block, "swap_space": 4 << 20, "max_num_batched_tokens": 64}) as engine:
        for _ in range(2):
            expect_same_answers(alone, engine.batch(REQUESTS))
        wait_until_idle(engine)
        stats = engine.stats()
        assert stats["preemptions"] > 0, stats


def next_log_probabilities(model, adapter=None, **options):
    """Log probabilities of all tokens after each of several prompts."""
    uses = [{"name": "a", "scale": 1}] if adapter else []
    requests = [{"tokens": list(range(7 * i, 7 * i + 40 + i)), "adapters": uses,
                 "sampling": {"max_tokens": 1, "temperature": 0, "logprobs": 4096}} for i in range(6)]
    with Engine(model, **options) as engine:
        if adapter:
            engine.load("a", adapter)
        tokens = [answer["choices"][0]["tokens"][0] for answer in engine.batch(requests)]
    return [dict(zip(token["top_ids"], token["top_logprobs"])) for token in tokens]


@pytest.mark.parametrize("kv, bound", [("int8", 0.02), ("fp8", 0.1)])
@pytest.mark.parametrize("adapted", [False, True])
def test_log_probabilities_are_close_to_an_unquantised_cache(models, tmp_path, kv, bound, adapted):
    """Only keys and values are rounded. Adapter panels share the same, smaller blocks."""
    adapter = save_adapter(models.memory[NAME], tmp_path / "a", 31, rank=9) if adapted else None
    plain, rounded = (next_log_probabilities(models[NAME], adapter, **options) for options in ({}, {"kv_cache_dtype": kv}))
    errors = [one[i] - other[i] for one, other in zip(plain, rounded, strict=True) for i in one]
    spread = statistics.pstdev(value for one in plain for value in one.values())
    assert 0 < statistics.pstdev(errors) < bound * spread, (statistics.pstdev(errors), spread)


def test_unsupported_format_is_refused_by_name(models):
    with pytest.raises(EngineError, match="--kv-cache-dtype int8 needs --kernels native"):
        Engine(models[NAME], kv_cache_dtype="int8", kernels="reference")
    with pytest.raises(EngineError, match="auto, int8 or fp8"):
        Engine(models[NAME], kv_cache_dtype="int4")


def test_inspect_names_the_format(models):
    plain, int8 = inspect([models[NAME]]), inspect([models[NAME]], "--kv-cache-dtype", "int8")
    assert int8[0]["served"]["kv_cache_dtype"] == "int8"
    assert plain[0]["served"]["kv_bytes_per_token"] > 1.8 * int8[0]["served"]["kv_bytes_per_token"]
