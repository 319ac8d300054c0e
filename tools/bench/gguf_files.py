#!/usr/bin/env python3
"""The benchmarks' 0.5 B checkpoint and its 8 adapters as GGUF files in bf16, for llama.cpp (tools/bench/peers.py).

    .venv/bin/python tools/bench/gguf_files.py path/to/llama.cpp/gguf-py
"""

import argparse
import json
import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file

import checkpoints

PARTS = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
NORMAL, CONTROL, UNUSED = 1, 3, 5  # token types


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, *part, kind = name.split(".")
    return f"blk.{layer}.{PARTS['.'.join(part)]}.{kind}"


def add_tensor(gguf, writer, name, tensor, wide):
    if wide:
        writer.add_tensor(name, tensor.float().contiguous().numpy())
        return
    raw = tensor.to(torch.bfloat16).contiguous().view(torch.int16).numpy().view(numpy.uint8)
    shape = (*tensor.shape[:-1], tensor.shape[-1] * 2)
    writer.add_tensor(name, raw.reshape(shape), raw_dtype=gguf.GGMLQuantizationType.BF16)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer, path):
    table = json.loads(path.read_text())
    size = checkpoints.DECODER["vocab_size"]
    tokens, kinds = [f"[PAD{i}]" for i in range(size)], [UNUSED] * size
    for token, i in table["model"]["vocab"].items():
        tokens[i], kinds[i] = token, NORMAL
    for token in table["added_tokens"]:
        tokens[token["id"]], kinds[token["id"]] = token["content"], CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["! #"])
    writer.add_eos_token_id(checkpoints.DECODER["eos_token_id"])
    writer.add_add_bos_token(False)


def write_model(gguf, model, path):
    shape = checkpoints.DECODER
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    add_tokenizer(writer, model / "tokenizer.json")
    for file in sorted(model.glob("*.safetensors")):
        for name, tensor in load_file(file).items():
            if name != "lm_head.weight":  # tied
                add_tensor(gguf, writer, gguf_name(name), tensor, wide=tensor.dim() == 1)
    finish(writer)


def write_adapter(gguf, folder, path):
    config = json.loads((folder / "adapter_config.json").read_text())
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    for name, tensor in load_file(folder / "adapter_model.safetensors").items():
        factor = "lora_a" if "lora_A" in name else "lora_b"
        base = name.removeprefix("base_model.model.").replace(".lora_A", "").replace(".lora_B", "")
        add_tensor(gguf, writer, f"{gguf_name(base)}.{factor}", tensor, wide=False)
    finish(writer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf_py", help="the folder gguf-py of llama.cpp's sources")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    sys.path.insert(0, options.gguf_py)
    import gguf
    model, adapters = checkpoints.make(str(options.folder / "qwen2-0.5b"), False, 8, 16)
    write_model(gguf, Path(model), options.folder / "model-bf16.gguf")
    for i, adapter in enumerate(adapters):
        write_adapter(gguf, Path(adapter), options.folder / f"a{i}.gguf")


if __name__ == "__main__":
    main()
