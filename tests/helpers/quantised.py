"""Quantised copies of tiny checkpoints: their folders, and the same models with decoded weights.

compressed-tensors' folders are quantised, compressed and, for the decoded weights, decompressed by the package of that name;
but its newest release has no groups in the order of activations, so these are decoded here as 0.12 did. GPTQ's and AWQ's are
packed here from the published layouts: AutoGPTQ's (words along the inputs, zero-points along the outputs, minus one in the
first format), AutoAWQ's WQLinear_GEMM (words along the outputs, their eight values in the order 0 2 4 6 1 3 5 7), which
compressed-tensors' converter reads, too. bitsandbytes' codes are packed here from QLoRA's tables of nf4 and fp4.
"""

import json
import re

import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import fake_quantize
from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp
from safetensors.torch import load_file, save_file

WORD_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # AWQ's order: position i of a word, from the lowest bits, holds output WORD_ORDER[i]
LINEAR = re.compile(r".*(_proj|c_attn|mlp\.w[12]|\.qkv|\.proj|\.fc[12]|mlp\.[02]|linear_[12])\.weight$")


def words(values, bits, order=None):
    """Packs values into int32 words along the last dimension."""
    per_word = 32 // bits
    parts = values.to(torch.int64).unflatten(-1, (-1, per_word))
    if order:
        parts = parts[..., order]
    packed = sum(parts[..., i] << (bits * i) for i in range(per_word))
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def rounded(weight, bits, order, groups, symmetric):
    """(integers [out, in], zero-points and scales [out, groups]) of a weight; order: the group of each input."""
    scales, zeros = torch.empty(len(weight), groups), torch.empty(len(weight), groups)
    for g in range(groups):
        part = weight[:, order == g]
        low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
        if symmetric:
            high = torch.maximum(high, -low)
            low = -high
        scales[:, g] = ((high - low) / (2**bits - 1)).clamp(min=1e-5).half().float()
        zeros[:, g] = 2 ** (bits - 1) if symmetric else (-low / scales[:, g]).round().clamp(1, 2**bits - 1)
    integers = (weight / scales[:, order]).round() + zeros[:, order]
    return integers.clamp(0, 2**bits - 1), zeros, scales


class Quantiser:
    """Replaces linears in a transformers folder with their quantised tensors."""

    keeps = ("visual",)  # name parts of linears that are left unchanged

    def __init__(self, bits=4, group=-1, symmetric=False):
        self.bits, self.group, self.symmetric = bits, group, symmetric

    def order_of(self, inputs):
        """(the group of each input, the number of groups)"""
        group = inputs if self.group < 0 else self.group
        return torch.arange(inputs) // group, -(-inputs // group)

    def shuffled(self, inputs):
        order, groups = Quantiser.order_of(self, inputs)
        return order[torch.randperm(inputs, generator=torch.Generator().manual_seed(inputs))], groups

    def fits(self, weight):
        return True

    def round_inputs(self, model):
        """Makes the linears of the model with decoded weights round their inputs as the format
        specifies."""

    def tensors(self, weight):
        """(tensors by part, the decoded weight)"""
        order, groups = self.order_of(weight.shape[1])
        integers, zeros, scales = rounded(weight, self.bits, order, groups, self.symmetric)
        return self.packed(integers, zeros, scales, order), (integers - zeros[:, order]) * scales[:, order]

    def quantise(self, folder):
        """Returns the decoded weights, by the names of the tensors that they replace."""
        tensors, decoded, kept = load_file(folder / "model.safetensors"), {}, []
        for name, weight in list(tensors.items()):
            if weight.dim() != 2 or not LINEAR.match(name):
                continue
            if any(part in name for part in self.keeps) or not self.fits(weight):
                kept.append(name.removesuffix(".weight"))
                continue
            parts, decoded[name] = self.tensors(tensors.pop(name).float())
            tensors |= {name.removesuffix("weight") + part: value.contiguous() for part, value in parts.items()}
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"quantization_config": self.config(kept)}))
        return decoded


class CompressedTensors(Quantiser):
    keeps = ()

    def __init__(self, bits, group, symmetric=True, file_format="pack-quantized"):
        super().__init__(bits, group, symmetric)
        args = QuantizationArgs(num_bits=bits, type="float" if file_format == "float-quantized" else "int", symmetric=symmetric,
                                strategy="channel" if group < 0 else "group", group_size=None if group < 0 else group)
        self.scheme, self.format = QuantizationScheme(targets=["Linear"], weights=args), file_format
        self.compressor = BaseCompressor.get_value_from_registry(file_format)

    def config(self, kept):
        made = QuantizationConfig(config_groups={"group_0": self.scheme}, format=self.format, quantization_status="compressed", ignore=kept)
        return made.model_dump(mode="json")

    def fits(self, weight):
        return self.group < 0 or weight.shape[1] % self.group == 0

    def tensors(self, weight):
        order, groups = self.order_of(weight.shape[1])
        _, zeros, scales = rounded(weight, self.bits, order, groups, self.symmetric)
        state = {"weight": weight, "weight_scale": scales / 3 if self.format == "float-quantized" else scales,
                 "weight_zero_point": (zeros - 2 ** (self.bits - 1)).to(torch.int8)}
        stored = self.compressor.compress(state, self.scheme)
        return stored, self.compressor.decompress(dict(stored), self.scheme)["weight"]


class RoundedInputs(CompressedTensors):
    """8-bit inputs too, with a scale per token or a stored one."""

    keeps = ("visual",)

    def __init__(self, file_format, stored_scale=None):
        super().__init__(8, -1, file_format=file_format)
        self.stored_scale = stored_scale
        self.inputs = QuantizationArgs(num_bits=8, type=self.scheme.weights.type, symmetric=True, dynamic=stored_scale is None,
                                       strategy="token" if stored_scale is None else "tensor")
        self.scheme.input_activations = self.inputs

    def tensors(self, weight):
        parts, decoded = super().tensors(weight)
        if self.stored_scale:
            parts["input_scale"] = torch.tensor([self.stored_scale])
        return parts, decoded

    def rounded(self, x):
        if self.stored_scale:
            scale, zero = torch.tensor([self.stored_scale]), torch.zeros(1)
        else:
            scale, zero = compute_dynamic_scales_and_zp(x, self.inputs, None)
        return fake_quantize(x, scale, zero, self.inputs)

    def round_inputs(self, model):
        for name, module in model.named_modules():
            if LINEAR.match(name + ".weight") and not any(part in name for part in self.keeps):
                module.register_forward_pre_hook(lambda _, args: (self.rounded(args[0]),))


class OrderedWords(CompressedTensors):
    """Groups of inputs in activation order, as stored by compressed-tensors up to 0.12."""

    def config(self, kept):
        made = super().config(kept)
        made["config_groups"]["group_0"]["weights"]["actorder"] = "group"
        return made

    order_of = Quantiser.shuffled
    tensors = Quantiser.tensors

    def packed(self, integers, zeros, scales, order):
        middle = 2 ** (self.bits - 1)
        return {"weight_packed": pack_to_int32((integers - middle).to(torch.int8), self.bits), "weight_scale": scales,
                "weight_zero_point": pack_to_int32((zeros - middle).to(torch.int8), self.bits, packed_dim=0),
                "weight_shape": torch.tensor(integers.shape), "weight_g_idx": order.to(torch.int32)}


class Gptq(Quantiser):
    def __init__(self, *args, version=1, desc_act=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.version, self.desc_act = version, desc_act

    def config(self, _):
        return {"quant_method": "gptq", "bits": self.bits, "group_size": self.group, "sym": self.symmetric, "damp_percent": 0.1,
                "desc_act": self.desc_act, "checkpoint_format": "gptq" if self.version == 1 else "gptq_v2", "true_sequential": True}

    def fits(self, weight):
        return not any(size % (32 // self.bits) for size in weight.shape)

    def order_of(self, inputs):
        return self.shuffled(inputs) if self.desc_act else super().order_of(inputs)

    def packed(self, integers, zeros, scales, order):
        return {"qweight": words(integers, self.bits).T.contiguous(),
                "qzeros": words((zeros - int(self.version == 1)).T, self.bits),
                "scales": scales.T.half().contiguous(), "g_idx": order.to(torch.int32)}


class Awq(Quantiser):
    def config(self, _):
        return {"quant_method": "awq", "bits": 4, "group_size": self.group, "zero_point": True, "version": "gemm",
                "modules_to_not_convert": ["visual"]}

    def fits(self, weight):
        return weight.shape[0] % 8 == 0 and (self.group < 0 or weight.shape[1] % self.group == 0)

    def packed(self, integers, zeros, scales, order):
        return {"qweight": words(integers.T.contiguous(), 4, WORD_ORDER), "qzeros": words(zeros.T.contiguous(), 4, WORD_ORDER),
                "scales": scales.T.half().contiguous()}


def auto_round(layout, quantiser):
    """AutoRound's configuration of tensors in this layout."""
    def config(kept):
        return {"quant_method": "auto-round", "packing_format": f"auto_round:auto_{layout}", "bits": quantiser.bits, "data_type": "int",
                "group_size": quantiser.group, "sym": quantiser.symmetric, "autoround_version": "0.9.2", "iters": 200, "seqlen": 2048,
                "block_name_to_quantize": "model.layers", "extra_config": {name: {"bits": 16, "data_type": "float"} for name in kept}}
    quantiser.config = config
    return quantiser


class Fp8(Quantiser):
    """8-bit floats with a scale per block, as in transformers' fine-grained fp8."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def config(self, kept):
        return {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": list(self.block),
                "modules_to_not_convert": kept}

    def tensors(self, weight):
        rows, columns = (torch.arange(size) // block for size, block in zip(weight.shape, self.block))
        scales = torch.empty(int(rows[-1]) + 1, int(columns[-1]) + 1)
        for i in range(scales.shape[0]):
            for j in range(scales.shape[1]):
                scales[i, j] = weight[rows == i][:, columns == j].abs().max() / 448
        grid = scales[rows][:, columns]
        stored = (weight / grid).to(torch.float8_e4m3fn)
        return {"weight": stored, "weight_scale_inv": scales}, stored.float() * grid


class BitsAndBytes(Quantiser):
    """4-bit codes of the flattened weight; nested: the block scales are 8-bit codes."""

    keeps = ()
    TABLES = {
        "nf4": [-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1],
        "fp4": [0, 0.0052083333, 0.6666666667, 1, 0.3333333333, 0.5, 0.1666666667, 0.25,
                0, -0.0052083333, -0.6666666667, -1, -0.3333333333, -0.5, -0.1666666667, -0.25]}

    def __init__(self, kind, block, nested_block=0):
        super().__init__()
        self.kind, self.block, self.nested_block, self.table = kind, block, nested_block, torch.tensor(self.TABLES[kind])

    def config(self, kept):
        return {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "_load_in_4bit": True, "_load_in_8bit": False,
                "bnb_4bit_quant_type": self.kind, "bnb_4bit_use_double_quant": bool(self.nested_block), "bnb_4bit_quant_storage": "uint8",
                "bnb_4bit_compute_dtype": "bfloat16", "llm_int8_skip_modules": ["lm_head"], "llm_int8_threshold": 6.0}

    def scales(self, blocks):
        """(the scales of the blocks, their tensors, their part of the state)"""
        scales = blocks.abs().amax(1)
        if not self.nested_block:
            return scales, {"weight.absmax": scales}, {}
        offset, table = scales.mean().item(), torch.linspace(-1, 1, 256)
        outer = torch.stack([part.abs().max() for part in (scales - offset).split(self.nested_block)])
        spread = outer.repeat_interleave(self.nested_block)[:len(scales)]
        codes = ((scales - offset) / spread).sub(table[:, None]).abs().argmin(0)
        stored = {"weight.absmax": codes.to(torch.uint8), "weight.nested_absmax": outer, "weight.nested_quant_map": table}
        state = {"nested_blocksize": self.nested_block, "nested_dtype": "float32", "nested_offset": offset}
        return table[codes] * spread + torch.tensor(offset), stored, state

    def tensors(self, weight):
        count, flat = weight.numel(), weight.flatten()
        blocks = torch.nn.functional.pad(flat, (0, -count % self.block)).view(-1, self.block)
        scales, parts, state = self.scales(blocks)
        codes = (blocks / scales[:, None]).flatten()[:count].sub(self.table[:, None]).abs().argmin(0)
        decoded = self.table[codes] * scales.repeat_interleave(self.block)[:count]
        pairs = torch.nn.functional.pad(codes, (0, count % 2)).to(torch.uint8).view(-1, 2)
        state |= {"quant_type": self.kind, "blocksize": self.block, "dtype": "bfloat16", "shape": list(weight.shape)}
        text = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
        parts |= {"weight": (pairs[:, 0] << 4 | pairs[:, 1])[:, None], "weight.quant_map": self.table.clone(),
                  f"weight.quant_state.bitsandbytes__{self.kind}": text}
        return parts, decoded.view(weight.shape)


class BitsAndBytesRows(Quantiser):
    """Integers of 8 bits by the largest magnitude of each output."""

    keeps = ()

    def config(self, kept):
        return {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": True, "_load_in_4bit": False, "_load_in_8bit": True,
                "llm_int8_has_fp16_weight": False, "llm_int8_skip_modules": None, "llm_int8_threshold": 6.0}

    def tensors(self, weight):
        largest = weight.abs().amax(1)
        integers = (weight * (127 / largest)[:, None]).round().to(torch.int8)
        return ({"weight": integers, "SCB": largest, "weight_format": torch.tensor(0, dtype=torch.uint8)},
                integers * (largest * 7.874015718698502e-3)[:, None])


def with_decoded(folder, decoded):
    """Puts decoded weights into a folder of plain tensors."""
    tensors = load_file(folder / "model.safetensors")
    assert decoded and set(decoded) <= set(tensors)
    save_file(tensors | {name: value.contiguous() for name, value in decoded.items()}, folder / "model.safetensors", {"format": "pt"})
