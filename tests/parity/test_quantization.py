"""`--quantization int8|int4` against transformers + PEFT on the decoded weights (tests/helpers/rounded_weights.py), in fp32."""

import pytest
import torch

import checkpoints
from checkpoints import save_adapter, save_model
from pictures import picture
from programs import Engine, EngineError
from reference import Reference, expect_same, logprob_rows
from rounded_weights import LINEARS, decoded_model
from test_quantised import expect_rounded, first_rows, short_requests

BLOCK = 128  # inputs that share a scale
TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]


@pytest.mark.parametrize("name", ["text-grouped-tied", "vl-grouped-tied"])
@pytest.mark.parametrize("bits", [4, 8])
def test_answers_equal_those_of_the_decoded_weights(models, tmp_path, name, bits):
    model = models.memory[name]
    reference = Reference(save_model(decoded_model(model, bits), tmp_path / "decoded"))
    adapters = {f"a{i}": save_adapter(model, tmp_path / f"a{i}", 900 + i, **config)
                for i, config in enumerate([dict(rank=8), dict(rank=3, targets=["q_proj", "gate_proj", "down_proj"]),
                                             dict(rank=4, use_dora=True)])}
    sampling = {"max_tokens": 16, "ignore_eos": True, "temperature": 0, "logit_bias": checkpoints.family(name).no_media_tokens(),
                "logprobs": model.config.get_text_config().vocab_size}
    messages = IMAGE if checkpoints.family(name).has_images else TEXT
    requests = [{"messages": messages, "sampling": sampling, "adapters": [{"name": use, "scale": 1}] if use else []}
                for use in ["", *adapters]]
    for adapter, path in adapters.items():
        reference.load_adapter(adapter, path)
    answers = {}
    for mode in ["unmerged", "merged", "mixture"]:
        with Engine(models[name], quantization=f"int{bits}", mode=mode) as engine:
            for adapter, path in adapters.items():
                engine.load(adapter, path)
            answers[mode] = engine.batch(requests)
            assert mode == "unmerged" or engine.stats()["merges"] > 0
        for request, answer in zip(requests, answers[mode], strict=True):
            expect_same(reference, request, answer, tolerance=1e-3)
    with Engine(models[name]) as engine:
        assert not torch.allclose(logprob_rows(engine.one(requests[0])), logprob_rows(answers["unmerged"][0]), atol=1e-3), "nothing is rounded"


def rounded(x, block):
    """x with each block of inputs rounded to a grid of 255 steps."""
    parts = []
    for part in x.split(block, dim=-1):
        largest = part.abs().amax(dim=-1, keepdim=True)
        scale = torch.where(largest > 0, largest / 127, 1)
        parts.append((part / scale).round() * scale)
    return torch.cat(parts, dim=-1)


def round_inputs(model):
    """Linears with integer weights get rounded inputs; their adapters do not."""
    for name, module in model.named_modules():
        linear, head = name.rsplit(".", 1)[-1] in LINEARS and "visual" not in name, name == "lm_head"
        if linear or head:
            module.register_forward_pre_hook(lambda _, args: (rounded(args[0], BLOCK),))


@pytest.mark.parametrize("bits", [4, 8])
def test_only_inputs_of_the_base_are_rounded(models, tmp_path, bits):
    name = "text-grouped-tied"
    model = models.memory[name]
    reference = Reference(save_model(decoded_model(model, bits), tmp_path / "decoded"))
    round_inputs(reference.base)
    adapters = {"a0": save_adapter(model, tmp_path / "a0", 900, rank=8)}
    reference.load_adapter("a0", adapters["a0"])
    requests = short_requests(reference, model.config.get_text_config().vocab_size, adapters)
    expect_rounded(reference, requests, *(first_rows(models[name], requests, adapters, quantization=f"int{bits}", activations=activations)
                                          for activations in ("int8", "auto")))


def test_inputs_are_rounded_only_for_integer_formats(models):
    with pytest.raises(EngineError, match="--activations int8 .* there are none; --quantization"):
        Engine(models["text-grouped-tied"], activations="int8")
    with pytest.raises(EngineError, match="--activations int8: only the native kernels"):
        Engine(models["text-grouped-tied"], quantization="int8", activations="int8", kernels="reference")


def test_merging_in_place_is_refused(models):
    with pytest.raises(EngineError, match="--merge inplace .* integers"):
        Engine(models["text-grouped-tied"], quantization="int8", mode="merged", merge="inplace")
    with Engine(models["text-grouped-tied"], quantization="int8", merge="inplace") as engine:
        assert engine.one({"messages": TEXT, "sampling": {"max_tokens": 2, "ignore_eos": True}})
