#!/usr/bin/env python3
"""Compares decoder families of one shape (0.5 B), in turn: tokens/s times decoder parameters, in prefill and in decode, as a ratio
to Qwen2's, with the base model and with an adapter per request.

A ratio below 1 means that the family's layers cost more than their products. Qwen3.5 takes part where transformers has it.

    .venv/bin/python tools/bench/families.py --rounds 5
    .venv-newest/bin/python tools/bench/families.py --rounds 5 --families Qwen2 Qwen3_5Text --prompt 512
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import sys

import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests/helpers"))
if int(transformers.__version__.split(".")[0]) >= 5:
    import visual_backend  # noqa: F401  must precede any import of a model
import checkpoints
from valora_server import Valora

SHAPE = checkpoints.DECODER
FAMILIES = {
    "Qwen2": dict(use_sliding_window=False),
    "Llama": {},
    "Mistral": dict(sliding_window=None),
    "Qwen3": dict(head_dim=64, use_sliding_window=False),
    "Gemma3Text": dict(head_dim=64, query_pre_attn_scalar=64, sliding_window=512, pad_token_id=0),
}
CLASSES = {"Gemma3Text": transformers.Gemma3ForCausalLM}
if hasattr(transformers, "Qwen3_5ForCausalLM"):  # its delta rules have the shape of the published 0.8 B
    FAMILIES["Qwen3_5Text"] = dict(num_attention_heads=8, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=16)
    CLASSES["Qwen3_5Text"] = transformers.Qwen3_5ForCausalLM


def build(family):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        config = getattr(transformers, f"{family}Config")(**SHAPE | FAMILIES[family])
        return CLASSES.get(family, getattr(transformers, f"{family}ForCausalLM", None))(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def layers_of(model):
    """Parameters of the decoder's linears, which every step reads."""
    return sum(p.numel() for name, p in model.named_parameters() if re.search(r"layers\.\d+\..*_proj", name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", default="build/bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--output", type=int, default=32)
    parser.add_argument("--rank", type=int, default=16, help="of the adapters")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="Qwen2 is always one")
    o = parser.parse_args()

    servers, sizes = {}, {}
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(0, 256, (o.clients, o.prompt), generator=generator).tolist()
    try:
        for family in dict.fromkeys(("Qwen2", *o.families)):
            model = build(family)
            layers = layers_of(model)
            # In prefill, the output layer has one row per prompt.
            sizes[family] = [layers, layers + SHAPE["vocab_size"] * SHAPE["hidden_size"]]
            folder, adapters = checkpoints.make(os.path.join(o.folder, f"family-{family.lower()}"), False, o.clients, o.rank, model=model)
            del model
            servers[family] = Valora(o.program, folder, adapters, o.threads)
        print(f"| family | prefill, base, tokens/s | decode | per parameter, prefill | decode | with {o.clients} adapters, prefill | decode |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        speeds = {(family, kind): ([], []) for family in servers for kind in ("base", "adapters")}
        for round_ in range(o.rounds + 1):
            # In any order: what runs before a server would count for one family in all rounds.
            for (family, kind), (prefill, decode) in random.sample(list(speeds.items()), len(speeds)):
                names = [f"a{i}" if kind == "adapters" else "base" for i in range(o.clients)]
                total, steady = servers[family].run(prompts, None, names, o.output)
                if round_ > 0:
                    prefill.append(o.clients * o.prompt / (total - steady))
                    decode.append(o.clients * (o.output - 1) / steady)
        medians = {key: [statistics.median(one) for one in both] for key, both in speeds.items()}
        for family in servers:
            row = [f"{value:.1f}" for value in medians[family, "base"]]
            for kind in ("base", "adapters"):
                own, other = (zip(medians[name, kind], sizes[name], strict=True) for name in (family, "Qwen2"))
                row += [f"{a * b / (c * d):.2f}" for (a, b), (c, d) in zip(own, other, strict=True)]
            print(f"| {family} | {' | '.join(row)} |", flush=True)
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
