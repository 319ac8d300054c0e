"""Compares the routers in simulated time: `python -m valora_serve.routing.compare [--trace FILE] [--speed 1,2]`."""

import argparse
from collections.abc import Callable

from .baselines import Core, LeastQueueCore, PowerOfTwoCore, PrefixCore, RoundRobinCore
from .core import CostCore
from .simulation import Machine, Result, simulate
from .workload import conversations, read_azure, synthetic

ROUTERS: dict[str, Callable[[], Core]] = {
    "round robin": RoundRobinCore,
    "power of two": PowerOfTwoCore,
    "least queue": LeastQueueCore,
    "Ray's prefix router": PrefixCore,
    "Ray's prefix router, threshold 10": lambda: PrefixCore(imbalanced=10),
    "cost": CostCore,
}
HEAD = (
    "| router | adapters hit | prefix tokens hit | TTFT p50, s | p99, s | answers/s | busiest / mean |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)


def row(name: str, result: Result) -> str:
    return (
        f"| {name} | {result.adapter_hits / result.adapter_asked:.1%} | {result.prefix_hits / result.prefix_asked:.1%} "
        f"| {result.quantile(0.5):.3f} | {result.quantile(0.99):.3f} | {result.throughput:.2f} | {result.balance:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--trace", help="a table of Azure's LLM inference trace; without it, synthetic arrivals"
    )
    parser.add_argument(
        "--speed",
        default="1",
        help="how much faster than the trace, several with commas; "
        "without a trace, requests per second",
    )
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--adapters", type=int, default=2000)
    parser.add_argument(
        "--slots", type=int, default=Machine.adapters, help="adapters that a replica has room for"
    )
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument(
        "--again", type=float, default=0.6, help="share of arrivals that continue a conversation"
    )
    options = parser.parse_args()
    machine = Machine(adapters=options.slots)
    for speed in map(float, options.speed.split(",")):
        arrivals = (
            read_azure(options.trace, speed, options.requests)
            if options.trace
            else synthetic(options.requests, speed)
        )
        requests = conversations(arrivals, options.adapters, options.exponent, options.again)
        print(
            f"\n{len(requests)} requests, {len(requests) / requests[-1].at:.1f} a second\n\n{HEAD}"
        )
        for name, make in ROUTERS.items():
            print(row(name, simulate(requests, make(), options.replicas, machine)), flush=True)


if __name__ == "__main__":
    main()
