"""Puts a soak test's server short of memory and time, with adapters that fill its pool exactly and hostile
grammars, and measures the longest time between two chunks of its streams."""

import http.client
import json
import pathlib
import re
import shutil
import struct
import time
import urllib.request

import numpy

from soak_requests import CHAT

# Ambiguous at every token: each mask must follow all possible parses of the text.
AMBIGUOUS = "root ::= s\ns ::= s s s | s s | [a-z ]"


def scaled(values, dtype, factor):
    if dtype == "BF16":  # the upper half of an fp32 value
        wide = (numpy.frombuffer(values, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
        return ((wide * numpy.float32(factor)).view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    kind = {"F32": numpy.float32, "F16": numpy.float16}[dtype]
    return (numpy.frombuffer(values, kind) * kind(factor)).tobytes()


def scaled_copy(source, target, factor):
    """Writes a distinct adapter: a copy of another one with all values scaled."""
    shutil.copytree(source, target)
    path = pathlib.Path(target) / "adapter_model.safetensors"
    data = bytearray(path.read_bytes())
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in tensor["data_offsets"])
        data[first:last] = scaled(bytes(data[first:last]), tensor["dtype"], factor)
    path.write_bytes(data)


def copies(sources, folder, count):
    """Adapters by name, made from the sources in rotation."""
    made = {}
    for i in range(count):
        name = f"copy-{i}"
        scaled_copy(sources[i % len(sources)], folder / name, 1 - 0.03 * (i + 1))
        made[name] = str(folder / name)
    return made


def filled_pool(server, adapters, least):
    """Bytes of a pool that whole adapters fill exactly and that has room for an adapter and at least `least` blocks.
    server: must have this many adapters of one size, all in its pool."""
    text = urllib.request.urlopen(server.url + "/metrics").read().decode()
    blocks = float(re.search(r'^valora:pool_blocks{.*use="adapters".*} (\S+)$', text, re.M).group(1))
    size, rest = divmod(blocks, adapters)
    if rest or not size:
        raise SystemExit(f"{adapters} adapters of one size have {blocks:.0f} blocks in the pool")
    return int(-(-(least + size) // size) * size * server.metrics()["valora:pool_block_bytes"])


class Gaps:
    """Records the longest times between two chunks of streams."""

    def __init__(self, url):
        self.host, self.longest, self.streams = url.removeprefix("http://"), 0.0, 0

    def stream(self, model, over):
        body = {"model": model, "messages": [{"role": "user", "content": "tell"}], "max_tokens": 200, "ignore_eos": True, "stream": True,
                "head": "", "priority": -1}
        connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            connection.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                return response.status, response.read().decode()
            last = None
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now = time.monotonic()
                if last is not None:
                    self.longest = max(self.longest, now - last)
                last = now
                if over.is_set():
                    return 200, ""
            self.streams += 1
            return 200, ""
        finally:
            connection.close()


def ambiguous_request(model):
    return {"model": model, "messages": [{"role": "user", "content": "words"}], "n": 64, "max_tokens": 24, "temperature": 1, "head": "",
            "structured_outputs": {"grammar": AMBIGUOUS}}


def slow_form(seed):
    """A different grammar for each seed, so that none is cached."""
    schema = {"type": "object", "title": str(seed), "minProperties": 150, "maxProperties": 160,
              "properties": {f"p{i}": {"type": "integer"} for i in range(300)}}
    return {"model": "base", "messages": [{"role": "user", "content": "words"}], "head": "", "max_tokens": 4, "structured_outputs": {"json": schema}}


def large_form(seed):
    """A grammar that takes megabytes."""
    schema = {"enum": [f"{seed}-{i}" for i in range(2000)]}
    return {"model": "base", "messages": [{"role": "user", "content": "words"}], "max_tokens": 1, "structured_outputs": {"json": schema}}


def small_form(model, seed):
    schema = {"type": "object", "properties": {"seed": {"const": seed}}, "required": ["seed"], "additionalProperties": False}
    return {"model": model, "messages": [{"role": "user", "content": "words"}], "head": "", "max_tokens": 200,
            "structured_outputs": {"json": schema}}
