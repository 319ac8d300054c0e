"""Replicas against ranks in simulated time (VaLoRA's table 3): what 1, 2 and 4 GPUs serve as separate servers and as ranks of
one, and which of the two answers faster at which load. Prints the tables of docs/measurements/ranks.md.

    .venv/bin/python tools/bench/replicas_and_ranks.py
"""

import argparse
import json
import subprocess

WORKLOAD = ("--policies", "valora", "--rank", "64", "--adapters", "10", "--skewness", "0.6", "--seconds", "120", "--picture-tokens", "256",
            "--prompt-min", "16", "--prompt-max", "128", "--answer-min", "16", "--answer-max", "200", "--max-num-seqs", "256", "--json")
SPLITS = [(gpus // ranks, ranks) for gpus in (1, 2, 4) for ranks in (1, 2, 4) if ranks <= gpus]
RATES = {"7b": (5, 20, 40, 80, 100, 110, 120, 140, 160, 400),  # the last one exceeds the capacity
         "34b": (1, 4, 8, 16, 24, 32, 36, 40, 44, 100)}


def run(program, model, replicas, ranks, rates):
    """Returns one row per rate."""
    command = [program, "bench", "trace", "--simulate", model, "--tensor-parallel-size", str(ranks), "--replicas", str(replicas),
               "--rate", ",".join(map(str, rates)), *WORKLOAD]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "--:|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def named(replicas, ranks):
    return f"{replicas} × {ranks}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    options = parser.parse_args()
    for model, rates in RATES.items():
        rows = {split: run(options.program, model, *split, rates) for split in SPLITS}
        alone = rows[1, 1][-1]["requests_per_second"]
        print(f"{model}: answers per second when more are asked for, by servers × ranks\n")
        table(("GPUs", "servers × ranks", "answers/s", "of one GPU's"),
              [(str(a * b), named(a, b), f"{rows[a, b][-1]['requests_per_second']:.1f}", f"{rows[a, b][-1]['requests_per_second'] / alone:.2f}")
               for a, b in SPLITS])
        print(f"{model} on 4 GPUs: ms per token / ms to the first token\n")
        four = [split for split in SPLITS if split[0] * split[1] == 4]
        table(("requests/s", *(named(*split) for split in four)),
              [(f"{rate}", *(f"{1e3 * rows[split][i]['token_latency_seconds']:.1f} / {1e3 * rows[split][i]['ttft_seconds']['mean']:,.0f}"
                             for split in four)) for i, rate in enumerate(rates[:-1])])


if __name__ == "__main__":
    main()
