#!/usr/bin/env python3
"""Hostile traffic beside good requests: no answer may be wrong, no request may end with a 5xx, memory must stay flat.

Serves the demo model in fp32 with small caches. Good clients ask the base and adapters about pictures that nobody sent
before, and an adapter that is replaced all the time; each of their answers must be that of a second server that gets the
same request alone. Hostile ones send broken bodies, broken pictures and adapters, prompts that are too long, leave
streams, read them slowly, and load, replace and unload adapters. Once the caches are full, resident memory is taken each
second; its median in the last fifth must be within 3 % of that in the first one. 503 is allowed (a queue that is full).

    .venv/bin/python tools/bench/soak.py --minutes 10
"""

import argparse
import base64
import collections
import contextlib
import http.client
import io
import itertools
import json
import pathlib
import queue
import random
import shutil
import socket
import statistics
import struct
import tempfile
import threading
import time
import zlib

import numpy
from PIL import Image

from valora_server import Valora

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAPTERS = {f"adapter-{i}": str(ROOT / "demo" / "adapters" / f"adapter-{i}") for i in range(1, 6)}
SWAPPED = ["adapter-2", "adapter-3"]  # what the adapter `swapped` is, in turns
CHAT = "/v1/chat/completions"
LENGTH = 1024  # the longest sequence


def request(url, method, path, body=None):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def picture(seed):
    """A PNG of noise over a gradient; its size and pixels depend on the seed."""
    generator = numpy.random.default_rng(seed)
    height, width = generator.integers(40, 200, 2)
    pixels = numpy.linspace(0, 200, width, dtype=numpy.uint8)[None, :, None] + generator.integers(0, 55, (height, width, 3), dtype=numpy.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def chat(model, text, *images, **fields):
    urls = [data if isinstance(data, str) else "data:image/png;base64," + base64.b64encode(data).decode() for data in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls] + [{"type": "text", "text": text}]
    return {"model": model, "messages": [{"role": "user", "content": parts}], "temperature": 0, "max_tokens": 24, "ignore_eos": True,
            "head": ""} | fields


def content(text, streamed):
    if not streamed:
        return json.loads(text)["choices"][0]["message"]["content"]
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def huge_png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


class Soak:
    def __init__(self, server, reference, folder):
        self.server, self.reference, self.folder = server, reference, folder
        self.over = threading.Event()
        self.counts, self.faults = collections.Counter(), []
        self.lock = threading.Lock()
        self.seeds = itertools.count(1)
        self.unchecked = queue.Queue(200)  # good clients wait while it is full
        self.checked = 0
        broken = folder / "broken"
        shutil.copytree(ADAPTERS["adapter-1"], broken)
        weights = broken / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1000])
        self.broken = str(broken)

    def note(self, kind, outcome, fault=None):
        with self.lock:
            self.counts[kind, outcome] += 1
            if fault:
                self.faults.append(f"{kind}: {fault}"[:500])

    def expect(self, kind, allowed, method, path, body=None):
        """Sends a request and notes its status; one that is not allowed is a fault. 429 and 503: a full queue."""
        status, text = request(self.server.url, method, path, body)
        self.note(kind, status, None if status in allowed or status in (429, 503) else f"{status} {text}")
        return status, text

    def good(self, chance):
        seed = next(self.seeds)
        model = chance.choice(["base", *ADAPTERS, "swapped"])
        streamed = chance.random() < 0.5
        body = chat(model, f"What is picture {seed}?", picture(seed), stream=streamed)
        status, text = self.expect("good", [200], "POST", CHAT, body)
        if status == 200:
            self.unchecked.put((body, content(text, streamed)))

    def check(self):
        while item := self.unchecked.get():
            try:
                self.compare(*item)
            except Exception as error:
                self.note("check", type(error).__name__, repr(error))

    def compare(self, body, answer):
        models = SWAPPED if body["model"] == "swapped" else [body["model"]]
        expected = [content(request(self.reference.url, "POST", CHAT, body | {"model": model, "stream": False})[1], False) for model in models]
        self.checked += 1
        if answer not in expected:
            self.note("good", "wrong answer", f"{body['model']}, {body['messages'][0]['content'][-1]['text']}: {answer!r}, alone {expected!r}")

    def swap(self, chance):
        for model in SWAPPED:
            self.expect("replaced adapter", [200], "POST", "/v1/load_lora_adapter",
                        {"lora_name": "swapped", "lora_path": ADAPTERS[model], "load_inplace": True})
            time.sleep(0.2 * chance.random())

    def churn(self, chance):
        name = f"churn-{chance.randrange(8)}"
        load = {"lora_name": name, "lora_path": chance.choice(list(ADAPTERS.values()))}
        self.expect("adapter load", [200, 400], "POST", "/v1/load_lora_adapter", load)
        self.expect("adapter of the moment", [200, 404], "POST", CHAT, chat(name, "hello", max_tokens=4))
        self.expect("adapter unload", [200, 404], "POST", "/v1/unload_lora_adapter", {"lora_name": name})

    def bad_adapter(self, chance):
        path, allowed = chance.choice([("/no/such/folder", [404]), (self.broken, [400, 422]), ("", [400])])
        self.expect("broken adapter", allowed, "POST", "/v1/load_lora_adapter", {"lora_name": "broken", "lora_path": path})

    def bad_body(self, chance):
        body = chance.choice([
            b'{"model": "base", "messages": [', b"[1, 2]", b"null", b"\xff\xfe" * 50, b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            {"model": "base", "messages": "hello"}, {"model": "base"}, chat("base", "x", temperature="hot"), chat("base", "x", max_tokens=-1),
            chat("base", "x", n=10_000), chat("base", "x", logit_bias={"x": 1}), chat("base", "x", response_format={"type": "table"}),
            chat("base", "x", structured_outputs={"regex": "[.*"}), chat("base", "look: <|image_pad|>")])
        paths = [CHAT, "/v1/completions", "/v1/embeddings", "/classify", "/tokenize", "/v1/load_lora_adapter"] if isinstance(body, bytes) else [CHAT]
        self.expect("broken body", [400], "POST", chance.choice(paths), body)

    def bad_picture(self, chance):
        data = picture(next(self.seeds))
        broken = chance.choice([data[:len(data) // 2], b"no picture " * 20, huge_png(65_000), "data:image/png;base64,@@@@", "http://127.0.0.1:1/x.png",
                                "file:///etc/passwd", data[:8] + bytes(chance.randrange(256) for _ in range(200))])
        self.expect("broken picture", [400, 413], "POST", CHAT, chat("base", "what?", broken))

    def long_prompt(self, chance):
        self.expect("prompt too long", [400, 413], "POST", CHAT, chat("base", "word " * chance.choice([2_000, 20_000, 200_000])))
        self.expect("long prompt", [200], "POST", "/v1/completions",
                    {"model": chance.choice(["base", *ADAPTERS]), "prompt": [chance.randrange(1000) for _ in range(900)], "max_tokens": 60, "n": 2,
                     "temperature": 1})

    def unknown(self, chance):
        self.expect("unknown model", [404], "POST", CHAT, chat(f"nobody-{chance.random()}", "hi"))
        self.expect("unknown path", [404, 405], chance.choice(["GET", "POST", "DELETE"]), "/v1/nothing")

    def raw(self, data):
        connection = socket.create_connection(("127.0.0.1", int(self.server.url.rsplit(":", 1)[1])), timeout=60)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(data)
        return connection

    def post_raw(self, body, length=None):
        data = json.dumps(body).encode()
        return self.raw(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                        % (CHAT.encode(), len(data) if length is None else length, data))

    def leave(self, chance):
        """A stream that is left early, a request whose answer nobody reads, and a body that never ends."""
        fields = dict(max_tokens=400, stream=chance.random() < 0.7)
        with self.post_raw(chat(chance.choice(["base", *ADAPTERS]), "tell", picture(next(self.seeds)), **fields),
                           None if chance.random() < 0.8 else 100_000) as connection:
            connection.settimeout(chance.random() * 0.5)
            with contextlib.suppress(OSError):
                connection.recv(200)
        self.note("left connection", "closed")

    def junk(self, chance):
        data = chance.choice([b"\0" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"A" * 100_000, b"POST /v1/chat/completions HTTP/1.1\r\nHost:",
                              b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{"])
        try:
            with self.raw(data) as connection:
                connection.shutdown(socket.SHUT_WR)
                line = connection.recv(100).split(b"\r\n")[0].decode("latin-1")
        except OSError:
            line = ""
        self.note("junk", line[9:12] or "closed", line if line[9:10] == "5" else None)

    def slow(self, chance):
        with self.post_raw(chat("base", "tell", stream=True, max_tokens=900)) as connection:
            for _ in range(40):
                if self.over.is_set() or not connection.recv(20):
                    break
                time.sleep(0.05)
        self.note("slow reader", "closed")

    def repeat(self, action, seed, pause):
        chance = random.Random(seed)
        while not self.over.is_set():
            try:
                action(chance)
            except Exception as error:  # a thread that ends would hide what comes after
                self.note(action.__name__, type(error).__name__, repr(error))
            self.over.wait(pause * chance.random())

    def threads(self):
        plan = [(self.good, 0.02)] * 4 + [(self.slow, 0.5)] * 2 + [(self.leave, 0.2)] * 2 + [
            (action, 0.3) for action in (self.swap, self.churn, self.bad_adapter, self.bad_body, self.bad_picture, self.long_prompt, self.unknown, self.junk)]
        return [threading.Thread(target=self.repeat, args=(action, seed, pause)) for seed, (action, pause) in enumerate(plan)]


def caches_full(metrics, media, visual):
    # An entry that does not fit beside the others leaves a gap, hence not 100 %.
    return metrics["valora:media_cache_bytes"] > 0.9 * media and metrics["valora:visual_cache_bytes"] > 0.9 * visual


def serve(program, *more):
    modules = [f"{name}={path}" for name, path in ADAPTERS.items()]
    return Valora(program, str(ROOT / "demo" / "model"), [], 1, prefix_caching=True, step_tokens=None, model_len=LENGTH, dtype="float32",
                  more=["--lora-modules", *modules, "--pool-memory", "64M", *more])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--valora", default=str(ROOT / "build" / "valora"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--mode", default="unmerged", help="scheduling policy of the server; the other one is unmerged")
    args = parser.parse_args()
    media, visual = 16 << 20, 4 << 20
    server = serve(args.valora, "--mode", args.mode, "--allow-runtime-lora-updating", "--media-cache", str(media), "--visual-cache",
                   str(visual), "--max-waiting", "64")
    reference = serve(args.valora)
    memory, full_after = [], None
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(server, reference, pathlib.Path(folder))
        soak.expect("adapter load", [200], "POST", "/v1/load_lora_adapter", {"lora_name": "swapped", "lora_path": ADAPTERS[SWAPPED[0]]})
        threads, checker = soak.threads(), threading.Thread(target=soak.check)
        begin = time.monotonic()
        try:
            for thread in [*threads, checker]:
                thread.start()
            with contextlib.suppress(OSError):  # a server that ends is told below
                while time.monotonic() < begin + 60 * args.minutes and server.process.poll() is None:
                    time.sleep(1)
                    if full_after is None and caches_full(server.metrics(), media, visual):
                        full_after = time.monotonic() - begin
                    if full_after is not None:
                        memory.append(server.memory())
        finally:
            soak.over.set()
            ended = server.process.poll()
            for thread in threads:
                thread.join()
            soak.unchecked.put(None)
            checker.join()
            server.close()
            reference.close()
    print("| request | outcome | times |\n|---|---|--:|")
    for (kind, outcome), times in sorted(soak.counts.items(), key=str):
        print(f"| {kind} | {outcome} | {times} |")
    print(f"\n{soak.checked} good answers compared with those given alone")
    if ended is not None:
        soak.faults.append(f"the server ended with {ended}")
    elif len(memory) < 10:
        soak.faults.append("the caches were not full early enough to judge the memory")
    else:
        first, last = (statistics.median(part) for part in (memory[:len(memory) // 5], memory[-(len(memory) // 5):]))
        print(f"caches full after {full_after:.0f} s; resident memory {first:.0f} MiB then, {last:.0f} MiB in the end ({last / first - 1:+.1%}), "
              f"at most {max(memory):.0f} MiB")
        if last > 1.03 * first:
            soak.faults.append(f"memory grew from {first:.0f} to {last:.0f} MiB")
    for fault in soak.faults[:20]:
        print("fault:", fault)
    if soak.faults:
        raise SystemExit(f"{len(soak.faults)} faults")


if __name__ == "__main__":
    main()
