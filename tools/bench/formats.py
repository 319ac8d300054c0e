#!/usr/bin/env python3
"""Compares the formats of weights in whole servers: decode against the bandwidth of memory, prefill against bf16.

A server per format, all with one random Qwen2-0.5B-shaped checkpoint and its base model, are asked in turns. Prints
medians: tokens/s in decode, the share of the bandwidth at which the packed bytes of a step's weights are read (measured
before and after each part, since it drifts), and the ratio to bf16 in the same round.

    .venv/bin/python tools/bench/formats.py --rounds 5
"""

import argparse
import os
import statistics

import checkpoints
from mixed_adapters import Bandwidth
from modes import HEAD, LINEARS, prompts
from valora_server import Valora

# Options, and bytes per weight of the linears and of the output layer.
FORMATS = {
    "bf16": ([], 2, 2),
    "int8": (["--quantization", "int8"], 8.125 / 8, 8.125 / 8),
    "int4": (["--quantization", "int4"], 4.5 / 8, 8.125 / 8),
    "int8 act": (["--quantization", "int8", "--activations", "int8"], 8.125 / 8, 8.125 / 8),
    "int4 act": (["--quantization", "int4", "--activations", "int8"], 4.5 / 8, 8.125 / 8),
}


class Run:
    """One format's part of a round: decode in tokens/s and steps/s, bytes/s of memory, prefill in seconds."""

    def __init__(self, tokens, steps, bandwidth, prefill):
        self.tokens, self.steps, self.bandwidth, self.prefill = tokens, steps, bandwidth, prefill


def run(server, batch, bandwidth, seed, options):
    before = statistics.median(bandwidth.measure(3))
    _, decode = server.run(prompts(batch, 64, seed), None, ["base"] * batch, options.output)
    rate = (before + statistics.median(bandwidth.measure(3))) / 2
    prefill, _ = server.run(prompts(1, options.prompt, 1000 + seed), None, ["base"], 1)
    steps = (options.output - 1) / decode
    return Run(batch * steps, steps, rate, prefill)


def rounds(servers, batch, bandwidth, options):
    """Runs per format, in turns; each round begins with another format, and the first one is a warm-up."""
    names, runs = list(servers), {name: [] for name in servers}
    for round_ in range(options.rounds + 1):
        first = round_ % len(names)
        for name in names[first:] + names[:first]:
            measured = run(servers[name], batch, bandwidth, round_, options)
            if round_:
                runs[name].append(measured)
    return runs


def show(batch, runs, options):
    rates = [r.bandwidth for of in runs.values() for r in of]
    print(f"batch {batch}: reading memory {statistics.median(rates) / 1e9:.1f} GB/s ({min(rates) / 1e9:.1f}-{max(rates) / 1e9:.1f})")
    print(f"  {'':<9} {'decode':>9} {'of memory':>10} {'over ' + options.formats[0]:>10} {f'prefill {options.prompt}':>12} {'over ' + options.formats[0]:>10}")
    first = runs[options.formats[0]]
    for name, of in runs.items():
        _, linear, head = FORMATS[name]
        read = linear * LINEARS + head * HEAD
        share = statistics.median(r.steps * read / r.bandwidth for r in of)
        decode = statistics.median(r.tokens / f.tokens for r, f in zip(of, first))
        prefill = statistics.median(f.prefill / r.prefill for r, f in zip(of, first))
        print(f"  {name:<9} {statistics.median(r.tokens for r in of):>7.1f}/s {100 * share:>8.0f} % {decode:>9.2f}x "
              f"{1000 * statistics.median(r.prefill for r in of):>9.0f} ms {prefill:>9.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--folder", default="build/bench/qwen2-0.5b")
    parser.add_argument("--formats", type=lambda text: text.split(","), default=list(FORMATS), help="the first is compared with")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the one request, in prefill")
    parser.add_argument("--output", type=int, default=64, help="tokens, in decode")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    model, _ = checkpoints.make(options.folder, False, 1, 16)
    bandwidth, servers = Bandwidth(options.threads, "cpu"), {}
    try:
        for name in options.formats:
            servers[name] = Valora(options.program, model, [], options.threads, FORMATS[name][0])
        for batch in options.batches:
            show(batch, rounds(servers, batch, bandwidth, options), options)
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
