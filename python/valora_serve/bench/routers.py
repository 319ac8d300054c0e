"""Compares the routers on real servers: `python bench/routers.py MODEL ADAPTERS [--program valora]`.

MODEL must have a tokenizer with one token per byte, and ADAPTERS must contain many folders, such as those made by
tools/bench/many_adapters.py. The requests are those of the simulation (routing/workload.py): conversations with adapters
drawn from a power law, at random times, with shortened prompts and short answers. Each router gets the same requests on
freshly started replicas, so that caches are empty. Prints the clients' times to the first token, and the replicas' cache
hits.
"""

import argparse
import asyncio
import hashlib
import os
import re
import statistics
import time

import httpx
import ray
from ray import serve

from valora_serve import app
from valora_serve.routing.workload import BLOCK, conversations, synthetic
from valora_serve.settings import Settings

PORT = 8792
URL = f"http://127.0.0.1:{PORT}"
LONGEST = 3500  # characters, and therefore tokens, of a prompt


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("adapters", help="folder of adapters")
    parser.add_argument("--program", default="valora")
    parser.add_argument("--replicas", default="2", help="several with commas")
    parser.add_argument("--routers", default="cost,power-of-two,round-robin,prefix")
    parser.add_argument("--requests", type=int, default=300, help="of a round and router")
    parser.add_argument("--rate", type=float, default=4, help="requests per second")
    parser.add_argument("--tokens", type=int, default=8, help="of an answer")
    parser.add_argument("--count", type=int, default=200, help="of adapters")
    parser.add_argument("--pool", default="64M", help="pool of a replica, for adapters and KV")
    parser.add_argument("--rounds", type=int, default=1)
    return parser.parse_args()


def text_of(link):
    """BLOCK characters for one link of a conversation's chain."""
    digest = hashlib.sha256(str(link).encode()).hexdigest()
    return digest[:BLOCK].ljust(BLOCK, "-")


def requests_of(options, names, seed):
    found = conversations(synthetic(options.requests, options.rate, seed), len(names), seed=seed)
    return [
        (
            request.at,
            {
                "model": names[int(request.hints.model[1:])],
                "prompt": "".join(text_of(link) for link, _ in request.hints.prefix)[:LONGEST],
                "max_tokens": options.tokens,
                "temperature": 0,
                "ignore_eos": True,
                "stream": True,
            },
        )
        for request in found
    ]


async def first_token(client, at, body, began):
    """Seconds from the request's scheduled time to its first piece of text."""
    await asyncio.sleep(max(0, began + at - time.perf_counter()))
    asked = time.perf_counter()
    first = None
    async with client.stream("POST", "/v1/completions", json=body) as answer:
        if answer.status_code != 200:
            raise RuntimeError((await answer.aread()).decode())
        async for line in answer.aiter_lines():
            if first is None and line.startswith("data: {"):
                first = time.perf_counter() - asked
    return first


async def play(requests):
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=URL, timeout=300, limits=limits) as client:
        began = time.perf_counter()
        times = await asyncio.gather(
            *(first_token(client, at, body, began) for at, body in requests)
        )
        return times, time.perf_counter() - began


def counter(text, name):
    return sum(float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", text, re.M))


def measure(options, router, replicas, seed):
    names = sorted(os.listdir(options.adapters))[: options.count]
    settings = Settings.model_validate(
        {
            "model": options.model,
            "served_model_name": "base",
            "program": options.program,
            "replicas": replicas,
            "cores": 1,
            "routing": router,
            "stats_period": 0.5,
            "options": ["--lora-dir", options.adapters, "--pool-memory", options.pool],
        }
    )
    serve.run(app(settings), name="valora", route_prefix="/")
    requests = requests_of(options, names, seed)
    for _, body in requests[:8]:
        httpx.post(
            f"{URL}/v1/completions", json=body | {"prompt": "warm", "stream": False}, timeout=300
        )
    times, took = asyncio.run(play(requests))
    text = httpx.get(f"{URL}/metrics", timeout=60).text
    hits = counter(text, "vllm:prefix_cache_hits_total") / counter(
        text, "vllm:prefix_cache_queries_total"
    )
    serve.delete("valora")
    return times, len(times) / took, hits


def main():
    options = arguments()
    ray.init(
        num_cpus=4, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False
    )
    serve.start(http_options={"host": "127.0.0.1", "port": PORT, "location": "HeadOnly"})
    try:
        for replicas in map(int, options.replicas.split(",")):
            print(
                f"\n{replicas} replicas, {options.rate} requests a second, load average {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            results = {router: [] for router in options.routers.split(",")}
            for seed in range(options.rounds):
                for router in results:
                    results[router].append(measure(options, router, replicas, seed + 1))
            for router, rounds in results.items():
                cuts = statistics.quantiles([t for times, _, _ in rounds for t in times], n=100)
                print(
                    f"  {router:14} TTFT p50 {1e3 * cuts[49]:7.0f} ms   p99 {1e3 * cuts[98]:7.0f} ms   "
                    f"{statistics.mean(rate for _, rate, _ in rounds):5.2f} answers/s   "
                    f"prefix tokens hit {statistics.mean(hits for _, _, hits in rounds):.1%}",
                    flush=True,
                )
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
