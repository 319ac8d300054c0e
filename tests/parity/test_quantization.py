"""`--quantization int8|int4` against transformers + PEFT on the decoded weights, in fp32.

The rounding is reimplemented here from its description (src/kernels/cpu/product/quantise.h).
"""

import copy

import numpy as np
import pytest
import torch

import checkpoints
from checkpoints import save_adapter, save_model
from pictures import picture
from programs import Engine, EngineError
from reference import Reference, expect_same, logprob_rows
from test_quantised import expect_rounded, first_rows, short_requests

GROUPS = {4: 32, 8: 128}
BLOCK = 128  # inputs that share a scale
# Values to which a group's largest element may be mapped, with 4 bits.
LARGEST = [-8, -7, -7.5, -8.5, -9, -9.5, -10, 7, 7.5, 8, 8.5, 9]
LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]


def bf16(values):
    return torch.from_numpy(values).bfloat16().float().numpy()


def nearest(w, scale, bits):
    inverse = np.float32(1) / scale
    return np.clip(np.rint(w * inverse), -(1 << (bits - 1)), (1 << (bits - 1)) - 1).astype(np.float32)


def squared_error(w, scale):
    """Sums per row, in the order of 16 lanes."""
    off = nearest(w, scale, 4) * scale - w
    lanes = np.zeros((len(w), 16), np.float32)
    for i in range(w.shape[1]):
        lanes[:, i % 16] += off[:, i] * off[:, i]
    return np.add.accumulate(lanes, axis=1, dtype=np.float32)[:, -1]


def refitted(w, scale):
    """The scale that best fits the integers obtained with `scale`, with sums in the order of 16
    lanes."""
    integers = nearest(w, scale, 4)
    products, squares = np.zeros((len(w), 16), np.float32), np.zeros((len(w), 16), np.float32)
    for i in range(w.shape[1]):
        products[:, i % 16] += integers[:, i] * w[:, i]
        squares[:, i % 16] += integers[:, i] * integers[:, i]
    product, square = (np.add.accumulate(lanes, axis=1, dtype=np.float32)[:, -1:] for lanes in (products, squares))
    return product / square


def decoded_group(w, bits):
    largest = w[np.arange(len(w)), np.abs(w).argmax(axis=1)][:, None]
    if bits == 8:
        scale = bf16(np.abs(largest) / np.float32(127))
    else:
        scales = [bf16(refitted(w, largest / np.float32(integer))) for integer in LARGEST]
        best = np.argmin([squared_error(w, scale) for scale in scales], axis=0)
        scale = np.stack(scales)[best, np.arange(len(w))]
    return nearest(w, scale, bits) * scale


def decoded(weight, bits):
    w = weight.detach().numpy()
    groups = [decoded_group(w[:, i:i + GROUPS[bits]], bits) for i in range(0, w.shape[1], GROUPS[bits])]
    return torch.from_numpy(np.concatenate(groups, axis=1))


@torch.no_grad()
def decoded_model(model, bits, linears=LINEARS):
    """The model that the integers represent; its output layer has 8 bits and is separate from the
    embeddings."""
    model = copy.deepcopy(model)
    for name, module in model.named_modules():
        if name.rsplit(".", 1)[-1] in linears and "visual" not in name:
            module.weight.copy_(decoded(module.weight, bits))
    model.lm_head.weight = torch.nn.Parameter(decoded(model.lm_head.weight, 8))
    model.config.tie_word_embeddings = model.config.get_text_config().tie_word_embeddings = False
    return model


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
