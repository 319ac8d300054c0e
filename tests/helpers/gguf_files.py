"""GGUF files of tiny models and tokenizers, as written by llama.cpp's converter; quantised and decoded by the package gguf."""


import gguf
import numpy as np
import torch
from gguf.quants import dequantize, quantize

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # token types


def add_tokenizer(writer, data, pre=None, size=None, scores=None):
    """Writes the contents of a tokenizer.json as metadata. pre: pre-tokenizer name of byte-level tokenizers; None: a SentencePiece
    tokenizer."""
    tokens, kinds = {i: token for token, i in data["model"]["vocab"].items()}, {}
    for token in data["added_tokens"]:
        tokens[token["id"]] = token["content"]
        kinds[token["id"]] = CONTROL if token["special"] else USER_DEFINED
    count = size or max(tokens) + 1
    if pre is None:
        kinds |= {i: BYTE for i, token in tokens.items() if token.startswith("<0x")}
        if unknown := data["model"]["unk_token"]:
            kinds[data["model"]["vocab"][unknown]] = UNKNOWN
            writer.add_unk_token_id(data["model"]["vocab"][unknown])
        if not any(part.get("prepend") for part in data["normalizer"].get("normalizers", [])):
            writer.add_add_space_prefix(False)
    writer.add_tokenizer_model("gpt2" if pre else "llama")
    writer.add_tokenizer_pre(pre or "default")
    writer.add_token_list([tokens.get(i, f"[PAD{i}]") for i in range(count)])
    writer.add_token_types([kinds.get(i, NORMAL) if i in tokens else UNUSED for i in range(count)])
    if pre:
        writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge for merge in data["model"]["merges"]])
    else:
        writer.add_token_scores([scores.get(tokens.get(i), -1000.0) for i in range(count)])


def tokenizer_file(path, data, architecture="llama", pre=None, scores=None, **settings):
    """Writes a file without tensors."""
    writer = gguf.GGUFWriter(str(path), architecture)
    add_tokenizer(writer, data, pre, scores=scores)
    for key, value in settings.items():
        getattr(writer, f"add_{key}")(value)
    finish(writer)
    return path


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- models ----

FLOATS = {"F32": np.float32, "F16": np.float16}


def random_blocks(rng, shape, kind):
    """Blocks that the package can decode but not create: random integers, with scales that yield values around
    0.1."""
    per_block, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (*shape[:-1], shape[-1] // per_block, size), dtype=np.uint8)

    def put(at, low, high):
        raw[..., at:at + 2] = rng.uniform(low, high, (*raw.shape[:-1], 1)).astype(np.float16).view(np.uint8)
    scales = {"Q6_K": [(208, 0.5e-4)], "Q2_K": [(80, 5e-3), (82, 7e-3)], "Q3_K": [(108, 2e-3)], "IQ4_NL": [(0, 1e-3)],
              "IQ4_XS": [(0, 0.5e-4)]}
    if kind.name in scales:
        for at, low in scales[kind.name]:
            put(at, low, 2.4 * low)
    else:
        wide = 1 if kind == gguf.GGMLQuantizationType.Q4_K else 0.5
        put(0, 2e-4 * wide, 5e-4 * wide)  # 6-bit scales, times 4- or 5-bit values
        put(2, 2e-3, 4e-3)
    return raw.reshape(*shape[:-1], -1)


def stored(values, kind, rng):
    """(the file's contents for these values, the values they decode to)"""
    if kind in FLOATS:
        raw = values.astype(FLOATS[kind])
        return raw, raw.astype(np.float32)
    kind = gguf.GGMLQuantizationType[kind]
    only_decoded = kind.name.endswith("_K") or kind.name.startswith("IQ")
    raw = random_blocks(rng, values.shape, kind) if only_decoded else quantize(values, kind)
    return raw, dequantize(raw, kind)


def interleaved(values, heads):
    """Rows of queries or keys in the order in which llama.cpp's converter stores those of Llama."""
    return values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def back_in_halves(values, heads):
    return values.reshape(heads, len(values) // heads // 2, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def add_settings(writer, config):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if head := getattr(config, "head_dim", None):
        writer.add_key_length(head)
        writer.add_value_length(head)
        writer.add_rope_dimension_count(head)
    writer.add_eos_token_id(config.eos_token_id)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    full = rope.get("full_attention", rope)
    writer.add_rope_freq_base(full.get("rope_theta") or config.rope_theta)
    kind = full.get("rope_type", full.get("type", "default"))
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(full["factor"])
    if sections := rope.get("mrope_section"):
        writer.add_rope_dimension_sections([*sections, 0])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(full["original_max_position_embeddings"])
    return full if kind == "llama3" else None


def rope_factors(rope, theta, head):
    """The divisors of Llama 3's frequencies (llama.cpp's converter, from transformers' formula)."""
    frequencies = 1.0 / theta ** (torch.arange(0, head, 2, dtype=torch.float32) / head)
    lengths, original = 2 * torch.pi / frequencies, rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    smooth = (original / lengths - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    factors = torch.where(lengths < original / high, 1.0, torch.where(lengths > original / low, factor, between))
    return factors.numpy().astype(np.float32)


ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3,
                 "gemma3_text": gguf.MODEL_ARCH.GEMMA3}


@torch.no_grad()
def write_model(path, model, kind_of, tokenizer, seed=0):
    """Writes a transformers model to a file, and sets its weights to the values that the file decodes
    to.

    kind_of: maps the name of a two-dimensional tensor in the file to its type. tokenizer(writer): adds
    the tokenizer.
    """
    write_language(path, model.config, model.state_dict(), ARCHITECTURES[model.config.model_type], kind_of, tokenizer, seed)
    model.tie_weights()
    return path


@torch.no_grad()
def write_language(path, config, tensors, architecture, kind_of, tokenizer, seed=0, rows=None, deepstack=0):
    """Writes a language model of these tensors. rows: of tokens; those after them are left out, as the converter does for Gemma 3.
    deepstack: the first layers that take features of Qwen3-VL's tower."""
    rng, kind = np.random.default_rng(seed), config.model_type
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    writer = gguf.GGUFWriter(str(path), gguf.MODEL_ARCH_NAMES[architecture])
    llama3 = add_settings(writer, config)
    if kind == "gemma3_text":
        writer.add_sliding_window(config.sliding_window)
    if deepstack:
        writer.add_num_deepstack_layers(deepstack)
    tokenizer(writer)
    if llama3:
        writer.add_tensor("rope_freqs.weight", rope_factors(llama3, llama3.get("rope_theta") or config.rope_theta, config.head_dim))
    for name, whole in tensors.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        tensor = whole[:rows] if rows and name in ("model.embed_tokens.weight", "lm_head.weight") else whole
        stored_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        values = tensor.float().numpy()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2])
        turned = architecture in (gguf.MODEL_ARCH.LLAMA, gguf.MODEL_ARCH.MISTRAL3) and heads
        norm = kind == "gemma3_text" and "norm" in name
        values = interleaved(values, heads) if turned else values + 1 if norm else values
        type_name = kind_of(stored_name) if values.ndim == 2 else "F32"
        raw, decoded = stored(values, type_name, rng)
        writer.add_tensor(stored_name, raw, raw_dtype=None if type_name in FLOATS else gguf.GGMLQuantizationType[type_name])
        decoded = back_in_halves(decoded, heads) if turned else decoded - 1 if norm else decoded
        tensor.copy_(torch.from_numpy(np.ascontiguousarray(decoded)))
    finish(writer)
