"""The cost of the ingress, and the gain from a second replica: `python bench/overhead.py MODEL [--program valora]`.

Sends requests to a server directly and to the application with one replica, in turn, then to the application with one and
with two single-core replicas, and prints medians over the rounds. The machine should be idle and have a core for each
replica and one more for the rest; other load is shown as the load average.
"""

import argparse
import asyncio
import os
import statistics
import time

import httpx
import ray
from ray import serve

from valora_serve import app
from valora_serve.child import Child
from valora_serve.settings import Settings, command

PORT = 8791


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--program", default="valora")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100, help="of a round and side")
    parser.add_argument(
        "--concurrency", default="1,8", help="clients at a time, several with commas"
    )
    parser.add_argument("--tokens", type=int, default=16, help="of an answer")
    parser.add_argument("--words", type=int, default=2, help="of a prompt")
    parser.add_argument("--sides", default="ingress,replicas", help="what to compare")
    return parser.parse_args()


async def ask(client, limit, number, options):
    """Each prompt begins differently, so that none finds another's prefix in the cache."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": f"{number} " + "word " * (options.words - 1)}],
        "temperature": 0,
        "max_tokens": options.tokens,
        "ignore_eos": True,
    }
    async with limit:
        began = time.perf_counter()
        answer = await client.post("/v1/chat/completions", json=body)
        answer.raise_for_status()
        return time.perf_counter() - began


async def round_of(url, options, concurrency, number):
    """Returns (requests per second, latencies in seconds)."""
    limit = asyncio.Semaphore(concurrency)
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        began = time.perf_counter()
        jobs = [
            ask(client, limit, number * options.requests + i, options)
            for i in range(options.requests)
        ]
        times = await asyncio.gather(*jobs)
        return options.requests / (time.perf_counter() - began), times


def settings_of(options, replicas):
    return Settings.model_validate(
        {
            "model": options.model,
            "served_model_name": "m",
            "program": options.program,
            "replicas": replicas,
            "cores": 1,
            "options": ["--pool-memory", "256M"],
        }
    )


def deploy(options, replicas):
    serve.run(app(settings_of(options, replicas)), name="valora", route_prefix="/")


def compare(options, sides, concurrency):
    """Runs the sides in turn; the first round of each is not counted."""
    rates, times = {name: [] for name in sides}, {name: [] for name in sides}
    for number in range(options.rounds + 1):
        for side, (name, (prepare, url)) in enumerate(sides.items()):
            prepare()
            prompts = number * len(sides) + side  # no side finds the other's in the cache
            rate, seconds = asyncio.run(round_of(url, options, concurrency, prompts))
            if number:
                rates[name].append(rate)
                times[name] += seconds
    print(
        f"\n{concurrency} clients, {options.rounds} rounds of {options.requests} requests of {options.words} words with "
        f"answers of {options.tokens} tokens; "
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    for name in sides:
        cuts = statistics.quantiles(times[name], n=100)
        print(
            f"  {name:24} {statistics.median(rates[name]):8.1f} requests/s   p50 {1e3 * cuts[49]:7.1f} ms   "
            f"p99 {1e3 * cuts[98]:7.1f} ms"
        )
    first, second = sides
    ratios = [b / a for a, b in zip(rates[first], rates[second], strict=True)]
    print(
        f"  {second} beside {first}: {statistics.median(ratios):.2f} times the requests/s "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def compare_ingress(options, url):
    child = Child(command(settings_of(options, 1), 1), log=lambda line: None)
    try:
        direct = child.start(120)
        deploy(options, 1)
        for concurrency in map(int, options.concurrency.split(",")):
            compare(
                options,
                {"directly": (lambda: None, direct), "through Ray Serve": (lambda: None, url)},
                concurrency,
            )
    finally:
        child.stop(10)


def main():
    options = arguments()
    ray.init(
        num_cpus=4, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False
    )
    serve.start(http_options={"host": "127.0.0.1", "port": PORT, "location": "HeadOnly"})
    url = f"http://127.0.0.1:{PORT}"
    try:
        if "ingress" in options.sides:
            compare_ingress(options, url)
        if "replicas" in options.sides:
            sides = {f"{n} of one core": (lambda n=n: deploy(options, n), url) for n in (1, 2)}
            compare(options, sides, 16)
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
