#!/usr/bin/env python3
"""Ranks: N ranks of one thread against one rank of N threads on the same cores, in turn, with the base model and with an adapter
per request: tokens/s in prefill and in decode, and the time spent in collectives.

With a single memory no gain is possible, so the ratio is the cost of ranks.

    .venv/bin/python tools/bench/ranks.py --ranks 2 --rounds 5
"""

import argparse
import os
import statistics

import torch

import checkpoints
from valora_server import Valora

COUNTERS = ["steps", "step_seconds", "collectives", "collective_bytes", "collective_seconds"]
NAMES = {"steps": "valora:engine_steps_total"}


def counters(server):
    metrics = server.metrics()
    return [metrics.get(NAMES.get(name, f"valora:{name}_total"), 0) for name in COUNTERS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", default="build/bench")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--output", type=int, default=32)
    parser.add_argument("--rank", type=int, default=16, help="of the adapters")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()

    most = max(o.batches)
    model, adapters = checkpoints.make(os.path.join(o.folder, "qwen2-0.5b"), False, most, o.rank)
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(0, 256, (most, o.prompt), generator=generator).tolist()
    servers = {"one": Valora(o.program, model, adapters, o.ranks),
               "ranks": Valora(o.program, model, adapters, o.ranks, ("--tensor-parallel-size", str(o.ranks)))}
    print(f"| | clients | prefill, 1 rank x {o.ranks} threads | {o.ranks} ranks x 1 thread | ratio | decode, 1 rank | {o.ranks} ranks | "
          "ratio | of a step in collectives | bytes per step |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    try:
        for kind in ("base", "adapters"):
            for batch in o.batches:
                names = [f"a{i}" if kind == "adapters" else "base" for i in range(batch)]
                prefill, decode = ({name: [] for name in servers} for _ in range(2))
                before = None
                for round_ in range(o.rounds + 1):
                    for name, server in servers.items():
                        total, steady = server.run(prompts[:batch], None, names, o.output)
                        if round_ == 0:
                            continue
                        prefill[name].append(batch * o.prompt / (total - steady))
                        decode[name].append(batch * (o.output - 1) / steady)
                    before = before or counters(servers["ranks"])
                steps, seconds, _, moved, waited = (b - a for a, b in zip(before, counters(servers["ranks"])))
                row = []
                for speeds in (prefill, decode):
                    one, ranks = (statistics.median(speeds[name]) for name in servers)
                    row += [f"{one:.1f}", f"{ranks:.1f}", f"{ranks / one:.2f}"]
                print(f"| {kind} | {batch} | {' | '.join(row)} | {100 * waited / seconds:.1f} % | {moved / steps:.0f} |", flush=True)
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
