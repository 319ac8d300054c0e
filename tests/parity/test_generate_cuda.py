"""GPU only: decode steps replayed as captured graphs, which never happens in the fp32 suites. Skipped
elsewhere."""

import pytest

import checkpoints
from checkpoints import save_adapter
from programs import DEVICE, Engine, token_ids

pytestmark = pytest.mark.skipif(DEVICE != "cuda", reason="VALORA_DEVICE is not cuda")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["text-grouped-tied", "vl-grouped-tied", "llama3-scaled", "gemma3", "mistral-windows"])
def test_batched_steps_equal_single_request_steps(models, tmp_path, name, dtype):
    """Batches of all sizes, with several adapters, sums and none, against each request alone, up to rounding."""
    kinds = {"a": dict(rank=3, targets=["q_proj", "v_proj"]), "b": dict(rank=64, targets="all-linear"), "c": dict(rank=16)}
    uses = [[], [{"name": "a"}], [{"name": "b"}], [{"name": "c", "scale": 0.5}], [{"name": "a"}, {"name": "b"}]]
    family = checkpoints.family(name)
    requests = [{"messages": [{"role": "user", "content": "the image shows a red circle " * (i % 7 + 1) + str(i)}],
                 "adapters": uses[i % len(uses)],
                 "sampling": {"max_tokens": 5 + i % 23, "ignore_eos": True, "temperature": 0, "logprobs": 1,
                              "logit_bias": family.no_media_tokens()}} for i in range(40)]
    with Engine(models[name], dtype=dtype, pool_memory=256 << 20, prefix_caching=False) as engine:
        for seed, (adapter, options) in enumerate(kinds.items()):
            engine.load(adapter, save_adapter(models.memory[name], tmp_path / adapter, 300 + seed, **options))
        alone = [engine.one(request) for request in requests]
        crowded = engine.batch(requests)
    compared = 0
    for one, other in zip(alone, crowded, strict=True):
        for mine, theirs in zip(one["choices"][0]["tokens"], other["choices"][0]["tokens"], strict=True):
            if mine["id"] != theirs["id"]:  # a near tie: later tokens differ
                assert abs(mine["logprob"] - theirs["logprob"]) < 0.1
                break
            assert abs(mine["logprob"] - theirs["logprob"]) < 0.1
            compared += 1
    assert compared > 0.6 * sum(len(token_ids(answer)) for answer in alone)
