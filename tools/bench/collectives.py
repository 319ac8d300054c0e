#!/usr/bin/env python3
"""The all-reduce of ranks on one machine's CPUs: ours, through memory that the ranks share, against gloo's, in turn. Ranks have
one thread each; gloo's are processes, which exchange bytes over the loopback interface.

    .venv/bin/python tools/bench/collectives.py --rounds 5
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

REPEATS = 200


def ours(program):
    """Seconds per all-reduce by (ranks, values)."""
    report = subprocess.run([program, "bench", "ops", "--filter", "all_reduce", "--seconds", "1", "--json"],
                            check=True, capture_output=True, text=True).stdout
    found = {}
    for measured in json.loads(report)["measurements"]:
        shape = measured["shape"]
        found[shape["ranks"], shape["values"]] = measured["seconds"]["valora"]["p50"] / shape["all_reduces"]
    return found


def gloo_rank(rank, ranks, counts, meeting, answers):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    for count in counts:
        values = torch.zeros(count)
        for repeats in (20, REPEATS):  # the first ones connect the ranks
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(repeats):
                dist.all_reduce(values)
            seconds = (time.perf_counter() - begin) / repeats
        if rank == 0:
            answers.put((ranks, count, seconds))
    dist.destroy_process_group()


def gloo(shapes):
    """Seconds per all-reduce by (ranks, values)."""
    found = {}
    for ranks in {ranks for ranks, _ in shapes}:
        counts = [count for of, count in shapes if of == ranks]
        answers = processes.get_context("spawn").SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            processes.spawn(gloo_rank, (ranks, counts, f"{folder}/meeting", answers), nprocs=ranks)
        for _ in counts:
            of, count, seconds = answers.get()
            found[of, count] = seconds
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()

    times = {}
    for _ in range(o.rounds):
        mine = ours(o.program)
        for name, found in (("ours", mine), ("gloo", gloo(sorted(mine)))):
            for shape, seconds in found.items():
                times.setdefault(shape, {}).setdefault(name, []).append(seconds * 1e6)
    print("| ranks | values | ours, µs | gloo, µs | gloo / ours |\n|--:|--:|--:|--:|--:|")
    for (ranks, values), by_name in sorted(times.items()):
        mine, theirs = (statistics.median(by_name[name]) for name in ("ours", "gloo"))
        print(f"| {ranks} | {values:,} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.1f} |")


if __name__ == "__main__":
    main()
