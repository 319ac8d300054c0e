"""How far the figures of a simulated trace are from those of the same trace on an engine, given two files
printed by `valora bench trace --json`, the second with --simulate and the file from --fit-costs or `tune
--cost`."""

import argparse
import json
import statistics

FIGURES = {
    "ms/token": lambda row: row["token_latency_seconds"],
    "TTFT": lambda row: row["ttft_seconds"]["mean"],
    "TTFT p99": lambda row: row["ttft_seconds"]["p99"],
    "TPOT": lambda row: row["tpot_seconds"]["mean"],
    "TPOT p99": lambda row: row["tpot_seconds"]["p99"],
}

POINT = ("rate", "skewness", "adapters", "cameras", "replicas")


def rows_of(path):
    with open(path) as file:
        return {(*(row[name] for name in POINT), row["policy"]): row for row in json.load(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("live")
    parser.add_argument("simulated")
    parser.add_argument("--within", type=float, default=0.1, help="deviation that counts as right")
    options = parser.parse_args()
    live, simulated = rows_of(options.live), rows_of(options.simulated)
    both = [key for key in live if key in simulated]
    if not both:
        parser.error("the files have no point and policy in common")
    print("".join(f"{name:>9}" for name in POINT) + "  " + f"{'policy':<10}" + "".join(f"{name:>22}" for name in FIGURES))
    deviations = {name: [] for name in FIGURES}
    for key in both:
        cells = []
        for name, figure in FIGURES.items():
            measured, computed = figure(live[key]), figure(simulated[key])
            if measured == 0:  # such as the time per output token of one-token answers
                cells.append(f"{'-':>22}")
                continue
            deviations[name].append(computed / measured - 1)
            cells.append(f"{1e3 * measured:>8.1f}{1e3 * computed:>8.1f}{100 * deviations[name][-1]:>+5.0f}%")
        print("".join(f"{value:>9g}" for value in key[:-1]) + f"  {key[-1]:<10}" + "".join(cells))
    for name, some in deviations.items():
        if some:
            print(f"{name}: mean deviation {100 * statistics.mean(map(abs, some)):.1f} %, largest {100 * max(map(abs, some)):.1f} %")
    every = [d for some in deviations.values() for d in some]
    print(f"{sum(abs(d) <= options.within for d in every)} of {len(every)} figures within {100 * options.within:g} %")


if __name__ == "__main__":
    main()
