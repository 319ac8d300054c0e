"""Tiny random checkpoints and adapters of odd sizes, written by transformers and PEFT themselves."""

import copy
import functools
import json
import warnings

import peft
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

import tokenizer_parity

ALL_LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
MROPE = {8: [1, 1, 2], 16: [2, 3, 3], 24: [4, 4, 4], 32: [4, 6, 6]}  # by head size


@functools.cache
def tokenizer():
    """A small byte-level BPE with Qwen2's special tokens."""
    made = tokenizers.Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(tokenizer_parity.QWEN2_WORDS), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    tokenizer_parity.train(made, 290)
    made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in tokenizer_parity.QWEN2_SPECIAL])
    return made


def special_id(name):
    return tokenizer().token_to_id(f"<|{name}|>")


def vocab_size():
    """Above the tokenizer's, as Qwen2 pads it."""
    return tokenizer().get_vocab_size() + 9


def text_config(hidden, heads, kv_heads, layers, intermediate, tied):
    return dict(vocab_size=vocab_size(), hidden_size=hidden, num_attention_heads=heads,
                num_key_value_heads=kv_heads, num_hidden_layers=layers, intermediate_size=intermediate,
                tie_word_embeddings=tied, max_position_embeddings=2048, rope_theta=10000.0, use_sliding_window=False,
                bos_token_id=None, eos_token_id=special_id("im_end"))


def qwen2(hidden, heads, kv_heads, layers, intermediate, tied):
    config = transformers.Qwen2Config(**text_config(hidden, heads, kv_heads, layers, intermediate, tied))
    return transformers.Qwen2ForCausalLM(config)


def qwen2_vl(hidden, heads, kv_heads, layers, intermediate, tied, patch, merge, vision_width, vision_heads, depth):
    text = text_config(hidden, heads, kv_heads, layers, intermediate, tied)
    text["rope_scaling"] = {"type": "mrope", "mrope_section": MROPE[hidden // heads]}
    vision = dict(depth=depth, embed_dim=vision_width, num_heads=vision_heads, hidden_size=hidden, mlp_ratio=3,
                  patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2, in_channels=3)
    config = transformers.Qwen2VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=tied, image_token_id=special_id("image_pad"),
        video_token_id=special_id("video_pad"), vision_start_token_id=special_id("vision_start"),
        vision_end_token_id=special_id("vision_end"))
    return transformers.Qwen2VLForConditionalGeneration(config)


MODELS = {
    "text-grouped-tied": lambda: qwen2(48, 6, 2, 3, 37, True),
    "text-one-layer": lambda: qwen2(80, 5, 1, 1, 101, False),
    "vl-grouped-tied": lambda: qwen2_vl(48, 6, 2, 3, 37, True, 14, 2, 32, 2, 2),
    "vl-small-patch": lambda: qwen2_vl(80, 5, 1, 3, 53, False, 8, 2, 24, 3, 1),
    "vl-one-layer": lambda: qwen2_vl(64, 2, 2, 1, 61, False, 14, 2, 48, 4, 3),
    "vl-merge-three": lambda: qwen2_vl(72, 3, 1, 2, 45, True, 6, 3, 32, 4, 1),
}


def is_vl(name):
    return name.startswith("vl")


@torch.no_grad()
def randomise(model, seed):
    """Weights that make every part matter: products keep the size of their input, norms and biases are no ones and zeros."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() > 1:
            fan_in = 1 if "embed_tokens" in name else parameter[0].numel()
            parameter.copy_(noise / fan_in**0.5)
        elif name.endswith("bias"):
            parameter.copy_(0.3 * noise)
        else:
            parameter.copy_(1 + 0.3 * noise)
    if model.config.get_text_config().tie_word_embeddings:
        model.get_input_embeddings().weight.mul_(model.get_input_embeddings().weight.shape[1] ** -0.5 * 2)
    model.tie_weights()
    return model.eval()


def image_processor(config):
    vision = config.vision_config
    factor = vision.patch_size * vision.spatial_merge_size
    return Qwen2VLImageProcessor(patch_size=vision.patch_size, merge_size=vision.spatial_merge_size,
                                 temporal_patch_size=vision.temporal_patch_size, min_pixels=4 * factor**2,
                                 max_pixels=24 * factor**2)


def make_model(name):
    return randomise(MODELS[name](), sorted(MODELS).index(name))


def save_model(model, folder, **kwargs):
    model.generation_config.eos_token_id = special_id("im_end")
    model.save_pretrained(folder, **kwargs)
    tokenizer().save(str(folder / "tokenizer.json"))
    if hasattr(model.config, "vision_config"):
        image_processor(model.config).save_pretrained(folder)
    return folder


@torch.no_grad()
def save_adapter(base, folder, seed, targets=None, rank=8, alpha=None, **config):
    """An adapter of `base` whose product changes each linear by half of what its weights are."""
    config = dict(r=rank, lora_alpha=2 * rank if alpha is None else alpha, target_modules=targets or ALL_LINEARS) | config
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(**config))
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, peft.tuners.lora.LoraLayer):
            a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
            a.copy_(torch.randn(a.shape, generator=generator) / a.shape[1] ** 0.5)
            b.copy_(0.5 * torch.randn(b.shape, generator=generator) / b.shape[1] ** 0.5 / layer.scaling["default"])
    for name, parameter in model.named_parameters():
        if "modules_to_save" in name:
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no base model to look up
        model.save_pretrained(folder)
    return folder


def add_head(folder, hidden, labels, seed, bias, name="score", problem_type="single_label_classification",
             add_generation_prompt=False):
    """A head beside an adapter's products, as PEFT stores modules_to_save, with its labels in the sidecar."""
    generator = torch.Generator().manual_seed(seed)
    tensors = load_file(folder / "adapter_model.safetensors")
    tensors[f"base_model.model.{name}.weight"] = torch.randn((len(labels), hidden), generator=generator)
    if bias:
        tensors[f"base_model.model.{name}.bias"] = torch.randn(len(labels), generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["modules_to_save"] = [*(config.get("modules_to_save") or []), name]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    sidecar = folder / "valora.json"
    notes = json.loads(sidecar.read_text()) if sidecar.exists() else {"heads": []}
    notes["heads"].append({"name": name, "labels": labels, "problem_type": problem_type,
                           "add_generation_prompt": add_generation_prompt})
    sidecar.write_text(json.dumps(notes))
    return folder
