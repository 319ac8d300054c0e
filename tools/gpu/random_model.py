"""Random checkpoints of the sizes of Qwen2.5 decoders, with adapters on their seven linears, drawn on the GPU in seconds.

Only for speed measurements: the values are bf16 noise. tools/bench/checkpoints.py makes similar ones with transformers,
but slowly.
"""

import json
import pathlib

import torch
from safetensors.torch import save_file

SIZES = {
    "0.5b": dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                 num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "7b": dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
               num_key_value_heads=4, vocab_size=152064, tie_word_embeddings=False),
}


def linears(size):
    """{path of a module in a layer: (outputs, inputs)}"""
    hidden, inner = size["hidden_size"], size["intermediate_size"]
    kv = hidden // size["num_attention_heads"] * size["num_key_value_heads"]
    return {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv, hidden), "self_attn.v_proj": (kv, hidden),
            "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner)}


def parameters(size):
    """Weights that a token is multiplied with: the linears of all layers and the output layer."""
    layer = sum(outputs * inputs for outputs, inputs in linears(size).values())
    return size["num_hidden_layers"] * layer + size["vocab_size"] * size["hidden_size"]


def adapter_values(size, rank):
    return size["num_hidden_layers"] * rank * sum(outputs + inputs for outputs, inputs in linears(size).values())


def draw(shape, scale, generator):
    return (torch.randn(shape, device="cuda", generator=generator) * scale).to(torch.bfloat16).cpu()


def write_config(folder, size):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(size | dict(
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", rms_norm_eps=1e-6, rope_theta=1e6,
        max_position_embeddings=32768, use_sliding_window=False, torch_dtype="bfloat16", eos_token_id=151645)))


def write_model(folder, size, tokenizer):
    """Writes the checkpoint once. `tokenizer` writes tokenizer.json into a folder."""
    if (folder / "config.json").exists():
        return
    folder.mkdir(parents=True)
    generator = torch.Generator("cuda").manual_seed(0)
    hidden = size["hidden_size"]
    index = {}

    def save(name, tensors):
        save_file(tensors, folder / name)
        index.update(dict.fromkeys(tensors, name))

    rest = {"model.embed_tokens.weight": draw((size["vocab_size"], hidden), 0.02, generator),
            "model.norm.weight": torch.ones(hidden, dtype=torch.bfloat16)}
    if not size["tie_word_embeddings"]:
        rest["lm_head.weight"] = draw((size["vocab_size"], hidden), 0.02, generator)
    save("rest.safetensors", rest)
    for layer in range(size["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        tensors = {prefix + f"{norm}_layernorm.weight": torch.ones(hidden, dtype=torch.bfloat16)
                   for norm in ("input", "post_attention")}
        for module, shape in linears(size).items():
            tensors[prefix + module + ".weight"] = draw(shape, 0.02, generator)
            if module[-6:] in ("q_proj", "k_proj", "v_proj"):
                tensors[prefix + module + ".bias"] = torch.zeros(shape[0], dtype=torch.bfloat16)
        save(f"layer-{layer}.safetensors", tensors)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    tokenizer(folder)
    write_config(folder, size)


def write_adapter(folder, size, rank, seed):
    """Writes a PEFT adapter on all linears once."""
    if (folder / "adapter_config.json").exists():
        return
    folder.mkdir(parents=True)
    generator = torch.Generator("cuda").manual_seed(seed)
    tensors = {}
    for layer in range(size["num_hidden_layers"]):
        for module, (outputs, inputs) in linears(size).items():
            name = f"base_model.model.model.layers.{layer}.{module}.lora_"
            tensors[name + "A.weight"] = draw((rank, inputs), 0.02, generator)
            tensors[name + "B.weight"] = draw((outputs, rank), 0.02, generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(dict(
        peft_type="LORA", task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank, lora_dropout=0.0, bias="none",
        target_modules=[module.split(".")[1] for module in linears(size)], inference_mode=True)))


def make(root, name, adapters, rank, tokenizer):
    """Writes root/name/model and root/name/rank-R/adapter-I; returns the model folder and the parent of
    the adapters."""
    size = SIZES[name]
    root = pathlib.Path(root) / name
    write_model(root / "model", size, tokenizer)
    for i in range(adapters):
        write_adapter(root / f"rank-{rank}" / f"adapter-{i}", size, rank, 100 + i)
    return root / "model", root / f"rank-{rank}"
