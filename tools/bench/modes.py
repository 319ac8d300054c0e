#!/usr/bin/env python3
"""Compares base, merged and unmerged requests: decode and prefill against the machine's limits.

Three servers with one random Qwen2-0.5B-shaped checkpoint in bf16 are measured in turn: the base model alone; `--mode
merged` with all requests under one adapter; `--mode unmerged` with a different adapter per request. Prints medians, the
cost of adapters relative to the base model in the same round, the share of bytes that they add, and the shares of the
machine's limits reached: memory bandwidth in decode (measured before and after each run, since it drifts), and
arithmetic in prefill (as measured by `valora bench ops`).

    .venv/bin/python tools/bench/modes.py --rounds 5
"""

import argparse
import json
import os
import statistics
import subprocess

import torch

import checkpoints
from mixed_adapters import Bandwidth
from valora_server import Valora

MODES = ("base", "merged", "unmerged")
# Weights that each token is multiplied with: the decoder's linears. The head applies only to the last token of a prompt.
LINEARS = 24 * (896 * (896 + 2 * 128) + 896 * 896 + 3 * 896 * 4864)
HEAD = 151936 * 896


def arithmetic(program, threads):
    """bf16 operations per second."""
    done = subprocess.run([program, "bench", "ops", "--json", "--filter", "rms_norm", "--threads", str(threads)],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["machine"]["bf16_operations_per_second"]


def prompts(count, length, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, length), generator=generator).tolist()


def names(mode, batch):
    return {"base": ["base"] * batch, "merged": ["a0"] * batch, "unmerged": [f"a{i}" for i in range(batch)]}[mode]


class Run:
    """One mode's part of a round."""

    def __init__(self, tokens, rate, prefill):
        self.tokens, self.rate, self.prefill = tokens, rate, prefill  # decode tokens/s, bytes/s, seconds


class Rounds:
    """Runs all modes in turn, round after round."""

    def __init__(self, servers, batch, options):
        self.servers, self.batch, self.options = servers, batch, options
        self.bandwidth, self.runs = Bandwidth(options.threads), {mode: [] for mode in MODES}

    def one(self, mode, round_):
        server, asked, steps = self.servers[mode], names(mode, self.batch), self.options.output - 1
        before = statistics.median(self.bandwidth.measure(3))
        _, decode = server.run(prompts(self.batch, 64, round_), None, asked, self.options.output)
        rate = (before + statistics.median(self.bandwidth.measure(3))) / 2
        prefill, _ = server.run(prompts(self.batch, self.options.prompt, 1000 + round_), None, asked, 1)
        return Run(self.batch * steps / decode, rate, prefill)

    def run(self):
        for round_ in range(self.options.rounds + 1):  # the first round is a warm-up
            for mode in MODES[round_ % 3:] + MODES[:round_ % 3]:
                run = self.one(mode, round_)
                if round_:
                    self.runs[mode].append(run)
        return self

    def median(self, mode, value):
        return statistics.median(value(run) for run in self.runs[mode])

    def over_base(self, mode, seconds):
        """Median over the rounds of the extra time relative to the base model."""
        return statistics.median(seconds(a) / seconds(b) - 1 for a, b in zip(self.runs[mode], self.runs["base"]))


def show(rounds, adapter_bytes, limit):
    batch, decoder = rounds.batch, 2 * (LINEARS + HEAD)
    rates = [run.rate for runs in rounds.runs.values() for run in runs]
    print(f"batch {batch}: reading memory {statistics.median(rates) / 1e9:.1f} GB/s "
          f"({min(rates) / 1e9:.1f}-{max(rates) / 1e9:.1f}), products {limit / 1e9:.0f} GFLOP/s")
    print(f"  {'':<9} {'decode':>9} {'of limit':>9} {'over base':>10} {'bytes more':>11} {'prefill':>9} {'of limit':>9} {'over base':>10}")
    work = 2 * batch * (rounds.options.prompt * LINEARS + HEAD)
    for mode in MODES:
        read = decoder + (batch * adapter_bytes if mode == "unmerged" else 0)
        share = rounds.median(mode, lambda run, read=read: run.tokens * read / batch / run.rate)
        prefill = rounds.median(mode, lambda run: run.prefill)
        print(f"  {mode:<9} {rounds.median(mode, lambda run: run.tokens):>7.1f}/s {100 * share:>7.0f} % "
              f"{100 * rounds.over_base(mode, lambda run: 1 / run.tokens):>+8.1f} % {100 * (read / decoder - 1):>9.1f} % "
              f"{1000 * prefill:>6.0f} ms {100 * work / prefill / limit:>7.0f} % {100 * rounds.over_base(mode, lambda run: run.prefill):>+8.1f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", default="build/bench/qwen2-0.5b")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prompt", type=int, default=512, help="tokens, in prefill")
    parser.add_argument("--output", type=int, default=64, help="tokens, in decode")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    model, adapters = checkpoints.make(options.folder, False, max(options.batches), options.rank)
    limit = arithmetic(options.program, options.threads)
    more = {"base": [], "merged": ["--mode", "merged"], "unmerged": ["--mode", "unmerged"]}
    given = {"base": [], "merged": adapters[:1], "unmerged": adapters}
    servers = {}
    try:
        for mode in MODES:
            servers[mode] = Valora(options.program, model, given[mode], options.threads, more[mode])
        for batch in options.batches:
            show(Rounds(servers, batch, options).run(), os.path.getsize(os.path.join(adapters[0], "adapter_model.safetensors")), limit)
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
