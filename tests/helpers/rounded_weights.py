"""The weights that `--quantization int8|int4` serves, reimplemented from the description of the rounding
(src/kernels/cpu/product/quantise.h)."""

import copy

import numpy as np
import torch

GROUPS = {4: 32, 8: 128}
# Values to which a group's largest element may be mapped, with 4 bits.
LARGEST = [-8, -7, -7.5, -8.5, -9, -9.5, -10, 7, 7.5, 8, 8.5, 9]
LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


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
