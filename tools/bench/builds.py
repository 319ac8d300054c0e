#!/usr/bin/env python3
"""Compares two builds of valora: the time of their engine steps, and the part of it spent outside the model.

Both serve one random Qwen2-0.5B-shaped checkpoint in bf16 and run the same batches in turn, round after round, in
alternating order. The times are the engine's own (/metrics): HTTP is not part of them. For each workload, prints the
median ratio of the new build's time to the old one's in the same round, with the lowest and highest.

    .venv/bin/python tools/bench/builds.py OLD-PROGRAM NEW-PROGRAM --rounds 7 --serve='--quantization int4 --activations int8'
"""

import argparse
import shlex
import statistics

import torch

import checkpoints
from valora_server import Valora

# name: models requested, prompt tokens, output tokens
WORKLOADS = {
    "base, decode of 1": (["base"], 64, 48),
    "base, decode of 8": (["base"] * 8, 64, 48),
    "8 adapters, decode": ([f"a{i}" for i in range(8)], 64, 48),
    "8 adapters, prefill": ([f"a{i}" for i in range(8)], 512, 1),
}


def run(server, workload, seed):
    names, length, tokens = workload
    generator = torch.Generator().manual_seed(seed)
    prompts = torch.randint(0, 256, (len(names), length), generator=generator).tolist()
    before = server.step_seconds()
    server.run(prompts, None, names, tokens)
    return [after - start for after, start in zip(server.step_seconds(), before)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="program of the build to compare with")
    parser.add_argument("new", help="program of the build that is judged")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--folder", default="build/bench/builds", help="where the checkpoint is kept")
    parser.add_argument("--serve", type=shlex.split, default=[], help="more arguments of both servers")
    options = parser.parse_args()
    model, adapters = checkpoints.make(options.folder, tower=False, adapters=8, rank=options.rank)
    servers = {name: Valora(program, model, adapters, options.threads, options.serve)
               for name, program in (("old", options.old), ("new", options.new))}
    ratios, seconds = {name: [] for name in WORKLOADS}, {name: [] for name in WORKLOADS}
    overhead = {"old": [0.0, 0.0], "new": [0.0, 0.0]}
    try:
        for workload in WORKLOADS.values():  # each first run reads the weights
            for server in servers.values():
                run(server, workload, 0)
        for round_ in range(1, options.rounds + 1):
            for name, workload in WORKLOADS.items():
                times = {}
                for build in sorted(servers, reverse=round_ % 2 == 0):
                    total, outside = run(servers[build], workload, round_)
                    times[build] = total
                    overhead[build][0] += total
                    overhead[build][1] += outside
                ratios[name].append(times["new"] / times["old"])
                seconds[name].append(times["new"])
    finally:
        for server in servers.values():
            server.close()
    print(f"{'steps of':22} {'new, s':>8} {'new/old':>8}   lowest - highest of {options.rounds} rounds")
    for name, values in ratios.items():
        print(f"{name:22} {statistics.median(seconds[name]):8.3f} {statistics.median(values):8.3f}   "
              f"{min(values):.3f} - {max(values):.3f}")
    for build, (total, outside) in overhead.items():
        print(f"outside the model, {build}: {100 * outside / total:.2f} % of {total:.1f} s")


if __name__ == "__main__":
    main()
