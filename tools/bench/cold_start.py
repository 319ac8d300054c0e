#!/usr/bin/env python3
"""Time to the first answer of an adapter on disk, compared with a warm one and with the limits of disk and memory.

A random Qwen2-0.5B-shaped checkpoint in bf16; `valora serve --lora-dir` reads only headers at start. The pool holds
half of the adapters, and all are used once so that the pool is full. Then each adapter that is not in the pool gets a
request for one token, with its file in the page cache or dropped from it, and another one when it is in the pool.
Prints the medians, the time to read just the file from disk and from the page cache, and the time to copy its bytes
in memory.

    .venv/bin/python tools/bench/cold_start.py --adapters 12
"""

import argparse
import json
import os
import shutil
import statistics
import time
import urllib.request

import torch

import checkpoints
from valora_server import Valora


def drop(path):
    """Drops a file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def absent(server):
    """The adapters that are not in the pool."""
    with urllib.request.urlopen(server.url + "/v1/lora_adapters") as response:
        return [card["name"] for card in json.load(response)["data"] if not card["resident"]]


def measure(server, files, place, prompt, rounds, times):
    """Adds the times of first answers, with the adapter at `place`, and of later ones."""
    def ask(name):
        return server.run([prompt], None, [name], 1)[0]

    for name in ["base"] * 3 + list(files):
        ask(name)
    for _ in range(rounds):
        for name in absent(server):
            (drop if place == "disk" else read)(files[name])
            times[place].append(ask(name))
            times["warm"].append(statistics.median(ask(name) for _ in range(3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--adapters", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=16, help="tokens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="build/bench/cold", help="where the checkpoint is kept")
    options = parser.parse_args()
    model, adapters = checkpoints.make(options.folder, tower=False, adapters=options.adapters, rank=options.rank)
    lora_dir = os.path.join(options.folder, "dir")
    shutil.rmtree(lora_dir, ignore_errors=True)
    os.makedirs(lora_dir)
    for i, path in enumerate(adapters):
        os.symlink(os.path.abspath(path), os.path.join(lora_dir, f"a{i}"))
    files = [os.path.join(path, "adapter_model.safetensors") for path in adapters]
    size = os.path.getsize(files[0])
    pool = ["--pool-memory", str(options.adapters // 2 * size), "--lora-dir", lora_dir]
    named = {f"a{i}": path for i, path in enumerate(files)}
    times = {"warm": [], "page cache": [], "disk": []}
    for place in ("page cache", "disk"):
        server = Valora(options.program, model, [], options.threads, pool)
        try:
            measure(server, named, place, list(range(options.prompt)), options.rounds, times)
        finally:
            server.close()
    data = torch.ones(size, dtype=torch.uint8)
    bounds = {"read of the file from disk": [], "read of the file from the page cache": [], "copy of its bytes in memory": []}
    for path in files:
        drop(path)
        bounds["read of the file from disk"].append(timed(lambda path=path: read(path)))
        bounds["read of the file from the page cache"].append(timed(lambda path=path: read(path)))
        bounds["copy of its bytes in memory"].append(timed(data.clone))
    print(f"adapters of {size / 2**20:.1f} MiB, rank {options.rank}; medians of {len(times['disk'])} or more, milliseconds")
    warm = statistics.median(times["warm"])
    for name in ("warm", "page cache", "disk"):
        middle = statistics.median(times[name])
        print(f"  first answer, {name:12} {1e3 * middle:8.1f}   (+{1e3 * (middle - warm):.1f})")
    for name, values in bounds.items():
        print(f"  {name:40} {1e3 * statistics.median(values):8.1f}")


if __name__ == "__main__":
    main()
