#!/usr/bin/env python3
"""Throughput as the number of served adapters grows (S-LoRA's figure): the same load over 5 to 2,000 adapters.

A small random decoder with thousands of adapters on its attention linears (S-LoRA's setting), one server per number of adapters, each with the
same pool. `valora bench serve` sends the same number of requests to each in turn, round after round, in an order that
changes; the adapter of each request is drawn from a power law. All adapters are used once beforehand. For each number, prints the median throughput, its
ratio to that of the fewest adapters in the same round, how often the adapter was in the pool, and the step time outside the model.

    .venv/bin/python tools/bench/many_adapters.py --rounds 3
"""

import argparse
import json
import os
import statistics
import subprocess

import torch
from safetensors.torch import save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

import checkpoints
from valora_server import Valora

SHAPE = dict(vocab_size=151936, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
             num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True, bos_token_id=None, eos_token_id=151645)
SIZES = {"q_proj": (512, 512), "k_proj": (512, 128), "v_proj": (512, 128), "o_proj": (512, 512)}


def write_adapter(folder, seed, rank):
    os.makedirs(folder, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(SHAPE["num_hidden_layers"]):
        for linear, (size, out) in SIZES.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{linear}.lora_"
            for half, shape in (("A", (rank, size)), ("B", (out, rank))):
                tensors[f"{name}{half}.weight"] = (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)
    save_file(tensors, os.path.join(folder, "adapter_model.safetensors"))
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": list(SIZES)}
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(config, file)


def make(folder, adapters, rank):
    model = os.path.join(folder, "model")
    if not os.path.exists(os.path.join(model, "tokenizer.json")):
        torch.manual_seed(0)
        Qwen2ForCausalLM(Qwen2Config(**SHAPE)).to(torch.bfloat16).save_pretrained(model)
        checkpoints.write_tokenizer(model)
    for i in range(adapters):
        path = os.path.join(folder, "adapters", f"a{i:05d}")
        if not os.path.exists(os.path.join(path, "adapter_config.json")):
            write_adapter(path, i, rank)
    return model


def folder_of(folder, count):
    """A folder with links to the first `count` adapters."""
    path = os.path.join(folder, f"first-{count}")
    os.makedirs(path, exist_ok=True)
    for i in range(count):
        link = os.path.join(path, f"a{i:05d}")
        if not os.path.islink(link):
            os.symlink(os.path.abspath(os.path.join(folder, "adapters", f"a{i:05d}")), link)
    return path


def serve(options, model, adapters):
    """Unlike the other benchmarks, uses prefix caching and the default step size."""
    return Valora(options.program, model, [], options.threads, ["--pool-memory", options.pool, "--lora-dir", adapters],
                  prefix_caching=True, step_tokens=None)


def load(options, server, seed, distribution, requests, tokens):
    """Runs the load once; returns requests per second."""
    command = [options.program, "bench", "serve", "--url", server.url, "--adapter-distribution", distribution,
               "--num-prompts", str(requests), "--concurrency", str(options.concurrency), "--input-tokens", tokens[0],
               "--output-tokens", tokens[1], "--seed", str(seed), "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if answer["all"]["failed"]:
        raise SystemExit(f"{answer['all']['failed']} requests failed")
    return answer["requests_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--counts", default="5,100,500,2000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--power", default="1", help="exponent of the popularity")
    parser.add_argument("--pool", default="1G")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="build/bench/many", help="where the checkpoint is kept")
    options = parser.parse_args()
    counts = [int(count) for count in options.counts.split(",")]
    model = make(options.folder, max(counts), options.rank)
    servers, rates = {}, {count: [] for count in counts}
    try:
        for count in counts:
            servers[count] = serve(options, model, folder_of(options.folder, count))
            print(f"{count} adapters: started in {servers[count].start_seconds:.2f} s, {servers[count].memory():.0f} MiB")
            load(options, servers[count], 0, "distinct", count, ("1", "1"))
        before = {count: servers[count].metrics() for count in counts}
        for round_ in range(1, options.rounds + 1):
            for count in sorted(counts, reverse=round_ % 2 == 0):
                rates[count].append(load(options, servers[count], round_, f"zipf:{options.power}",
                                         options.requests, ("16:112", "8:56")))
        print(f"{'adapters':>8} {'requests/s':>10} {'ratio':>6}   lowest - highest  in the pool  outside the model")
        for count in counts:
            now = servers[count].metrics()
            grown = {name: value - before[count].get(name, 0) for name, value in now.items()}
            ratios = [rate / first for rate, first in zip(rates[count], rates[counts[0]])]
            hits = grown["valora:adapter_hits_total"] / grown["valora:adapter_queries_total"]
            outside = grown["valora:step_overhead_seconds_total"] / grown["valora:step_seconds_total"]
            print(f"{count:8} {statistics.median(rates[count]):10.1f} {statistics.median(ratios):6.3f}   "
                  f"{min(ratios):.3f} - {max(ratios):.3f}    {100 * hits:8.1f} %  {100 * outside:14.2f} %")
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
