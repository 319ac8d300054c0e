"""How far the valora policy falls behind the best policy at each point of large sweeps, in noise-free simulated time:
independent requests, conversations about pictures, and cameras, from light load to overload.

    .venv/bin/python tools/bench/policies.py a100          # published costs of a GPU
    .venv/bin/python tools/bench/policies.py COSTS --cpu   # a file of `valora tune --cost`, and loads that suit two cores
"""

import argparse
import json
import statistics
import subprocess

POLICIES = ("valora", "unmerged", "merged", "mixture", "dlora", "vllm")
SKEWNESS = "0.2,0.4,0.6,0.8,0.9,1"
POINT = ("rate", "skewness", "adapters", "cameras")


class Loads:
    """A machine's rates and lengths."""

    def __init__(self, cpu):
        self.rates = "0.3,0.6,1,1.4" if cpu else "2,4,6,8"
        self.lengths = ("--prompt-max", "256", "--answer-max", "128") if cpu else ("--prompt-max", "512", "--answer-max", "400")
        self.conversations = "0.05,0.1,0.2,0.3" if cpu else "0.5,1,2,3"
        self.cameras = ("--cameras", "1", "--period", "6") if cpu else ("--cameras", "1,2,4,8")


def sweeps(loads):
    """Yields the name and the options of each sweep."""
    for rank in (16, 64):
        for adapters in (2, 8, 50):
            yield f"requests, rank {rank}", (
                "--rank", str(rank), "--adapters", str(adapters), "--rate", loads.rates, "--skewness", SKEWNESS,
                "--seconds", "300", *loads.lengths)
    yield "conversations", (
        "--application", "retrieval", "--rank", "64", "--adapters", "8", "--rate", loads.conversations,
        "--skewness", "0.2,0.6,0.9", "--seconds", "300", "--prompt-max", "40", "--answer-min", "20", "--answer-max", "60")
    for least, most in ((1, 1), (5, 10)):
        yield f"cameras, answers of {least} to {most} tokens", (
            "--application", "video", "--rank", "64", "--adapters", "4", *loads.cameras, "--seconds", "100",
            "--answer-min", str(least), "--answer-max", str(most))


def run(program, costs, options):
    """Token latency in seconds, by point and policy."""
    command = [program, "bench", "trace", "--simulate", costs, "--policies", ",".join(POLICIES), "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    points = {}
    for row in json.loads(done.stdout):
        points.setdefault(tuple(row[name] for name in POINT), {})[row["policy"]] = row["token_latency_seconds"]
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", help="a file of `valora tune --cost`, or a100")
    parser.add_argument("--cpu", action="store_true", help="loads that suit a small model on a few cores")
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--within", type=float, default=0.01, help="points that are farther behind are listed")
    options = parser.parse_args()
    behind = []
    for name, sweep in sweeps(Loads(options.cpu)):
        for point, latency in run(options.program, options.costs, sweep).items():
            best = min(latency, key=latency.get)
            behind.append(latency["valora"] / latency[best] - 1)
            if behind[-1] > options.within:
                where = ", ".join(f"{label} {value:g}" for label, value in zip(POINT, point) if value)
                print(f"{name}, {where}: {1e3 * latency['valora']:.1f} ms per token, {best} {1e3 * latency[best]:.1f}")
    print(f"{len(behind)} points: {100 * statistics.mean(behind):.2f} % behind the best on average, "
          f"{100 * max(behind):.1f} % at most")


if __name__ == "__main__":
    main()
