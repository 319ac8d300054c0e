#!/usr/bin/env python3
"""Resident memory of `valora serve` while distinct pictures pass through it.

Sends distinct pictures of noise over a few connections, asking for one token each. Prints resident memory at
intervals, with the sizes of the caches if the server reports them. The pool and the caches are small, so that they
are full after the first few thousand pictures: from then on memory should be flat.

    .venv/bin/python tools/bench/image_memory.py --pictures 12000
"""

import argparse
import base64
import http.client
import io
import json
import threading
import time

import numpy
from PIL import Image

from valora_server import Valora


def picture(seed, side):
    pixels = numpy.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=numpy.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def send(server, first, count, sides, connections):
    """Sends pictures first … first + count - 1; their sizes alternate between `sides`."""
    numbers, lock, faults = iter(range(first, first + count)), threading.Lock(), []

    def work():
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            image = {"type": "image_url", "image_url": {"url": picture(number, sides[number % len(sides)])}}
            body = {"model": "base", "max_tokens": 1, "messages": [{"role": "user", "content": [image]}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            if response.status != 200:
                faults.append(text)
                return

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise SystemExit(faults[0].decode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--model", default="demo/model")
    parser.add_argument("--pictures", type=int, default=12000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--sides", default="128", help="pixels; several by commas alternate")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--options", default="", help="further options of the server, by spaces")
    options = parser.parse_args()
    sides = [int(side) for side in options.sides.split(",")]
    server = Valora(options.program, options.model, [], options.threads,
                    ["--pool-memory", "64M", *options.options.split()], step_tokens=None)
    try:
        print(f"{0:7}  {server.memory():8.1f} MiB")
        begin = time.perf_counter()
        for first in range(0, options.pictures, options.every):
            send(server, first, options.every, sides, options.connections)
            metrics = server.metrics()
            caches = " + ".join(f"{metrics.get(name, 0) / 2**20:.1f}"
                                for name in ("valora:media_cache_bytes", "valora:visual_cache_bytes"))
            rate = (first + options.every) / (time.perf_counter() - begin)
            print(f"{first + options.every:7}  {server.memory():8.1f} MiB   caches {caches} MiB   {rate:.0f}/s", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
