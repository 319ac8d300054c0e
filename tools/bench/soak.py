#!/usr/bin/env python3
"""Hostile traffic beside good requests: no answer may be wrong, no request may end with a 5xx, memory must stay flat.

Serves the demo model in fp32 with small caches. Good clients ask the base and adapters about pictures that nobody sent
before, and an adapter that is replaced all the time; each of their answers must be that of a second server that gets the
same request alone. Hostile ones send broken bodies, broken pictures and adapters, prompts that are too long, ambiguous
grammars with 64 choices, leave streams, read them slowly, and load, replace and unload adapters. The server swaps, and
its pool has exactly as many blocks as four of its seventeen adapters. Once the caches are full, resident memory is taken
each second; its median in the last fifth must be within 3 % of that in the first one. A stream may not wait longer for a
chunk than --max-gap seconds, or three steps if that is more. 503 is allowed (a queue that is full), but requests may not
stand still (valora:stalls_total), and SIGTERM must end the server.

    .venv/bin/python tools/bench/soak.py               # ten minutes, on a machine where nothing else runs
    .venv/bin/python tools/bench/soak.py --short       # one minute, without a judgement of memory and gaps
"""

import argparse
import collections
import contextlib
import itertools
import json
import pathlib
import queue
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

from soak_pressure import Gaps, ambiguous_request, copies, filled_pool
from soak_requests import CHAT, chat, content, huge_png, picture, request
from valora_server import Valora

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAPTERS = {f"adapter-{i}": str(ROOT / "demo" / "adapters" / f"adapter-{i}") for i in range(1, 6)}
SWAPPED = ["adapter-2", "adapter-3"]  # what the adapter `swapped` is, in turns
LENGTH = 1024  # the longest sequence


class Soak:
    def __init__(self, server, reference, folder, adapters):
        self.server, self.reference, self.folder, self.adapters = server, reference, folder, list(adapters)
        self.gaps = Gaps(server.url)
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
        model = chance.choice(["base", *self.adapters, "swapped"])
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

    def grammar(self, chance):
        """It may be refused."""
        self.expect("ambiguous grammar", [200, 400], "POST", CHAT, ambiguous_request(chance.choice(["base", *ADAPTERS])))

    def stream(self, chance):
        status, text = self.gaps.stream("base", self.over)
        self.note("stream", status, None if status in (200, 429, 503) else text)

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
        plan = [(self.good, 0.02)] * 4 + [(self.stream, 0.1), (self.grammar, 1)] + [(self.slow, 0.5)] * 2 + [(self.leave, 0.2)] * 2 + [
            (action, 0.3) for action in (self.swap, self.churn, self.bad_adapter, self.bad_body, self.bad_picture, self.long_prompt, self.unknown, self.junk)]
        return [threading.Thread(target=self.repeat, args=(action, seed, pause)) for seed, (action, pause) in enumerate(plan)]


def caches_full(metrics, media, visual):
    # An entry that does not fit beside the others leaves a gap, hence not 100 %.
    return metrics["valora:media_cache_bytes"] > 0.9 * media and metrics["valora:visual_cache_bytes"] > 0.9 * visual


def serve(program, adapters, pool, *more):
    modules = [f"{name}={path}" for name, path in adapters.items()]
    return Valora(program, str(ROOT / "demo" / "model"), [], 1, prefix_caching=True, step_tokens=None, model_len=LENGTH, dtype="float32",
                  more=["--lora-modules", *modules, "--pool-memory", str(pool), *more])


def filled(program, adapters):
    """Bytes of the pool for --pool-memory."""
    server = serve(program, adapters, "64M")
    try:
        return filled_pool(server, len(adapters), LENGTH // 16)
    finally:
        server.close()


def end(server, limit=60):
    """Sends SIGTERM. Whether the server ended by it within the limit."""
    server.process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(limit)
        return True
    server.process.kill()
    server.process.wait()
    return False


def run(soak, minutes, full):
    """Runs until the time is over or the server ends. Returns resident memory by seconds, from when full() on."""
    server, memory, full_after = soak.server, [], None
    threads, checker = soak.threads(), threading.Thread(target=soak.check)
    begin = time.monotonic()
    try:
        for thread in [*threads, checker]:
            thread.start()
        with contextlib.suppress(OSError):  # a server that ends is told below
            while time.monotonic() < begin + 60 * minutes and server.process.poll() is None:
                time.sleep(1)
                if full_after is None and full(server.metrics()):
                    full_after = time.monotonic() - begin
                if full_after is not None:
                    memory.append(server.memory())
    finally:
        soak.over.set()
        if server.process.poll() is not None:
            soak.faults.append(f"the server ended with {server.process.poll()}")
        for thread in threads:
            thread.join()
        soak.unchecked.put(None)
        checker.join()
    if full_after is not None:
        print(f"caches full after {full_after:.0f} s")
    return memory


def judge_memory(soak, memory):
    if len(memory) < 10:
        soak.faults.append("the caches were not full early enough to judge the memory")
        return
    first, last = (statistics.median(part) for part in (memory[:len(memory) // 5], memory[-(len(memory) // 5):]))
    print(f"resident memory {first:.0f} MiB then, {last:.0f} MiB in the end ({last / first - 1:+.1%}), at most {max(memory):.0f} MiB")
    if last > 1.03 * first:
        soak.faults.append(f"memory grew from {first:.0f} to {last:.0f} MiB")


def judge_progress(soak, most, judged):
    """Of a server that is still there."""
    metrics = soak.server.metrics()
    step = metrics["valora:step_seconds_total"] / max(1, metrics["valora:engine_steps_total"])
    longest = soak.gaps.longest
    print(f"longest gap of {soak.gaps.streams} streams {longest:.2f} s; a step takes {step:.3f} s on average")
    if judged and longest > max(most, 3 * step):
        soak.faults.append(f"a stream waited {longest:.2f} s for a chunk")
    if stalls := metrics.get("valora:stalls_total"):
        soak.faults.append(f"requests stood still {stalls:.0f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--valora", default=str(ROOT / "build" / "valora"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--short", action="store_true", help="one minute, without a judgement of memory and gaps")
    parser.add_argument("--max-gap", type=float, default=0.5, help="seconds between two chunks of a stream")
    parser.add_argument("--mode", default="unmerged", help="scheduling policy of the server; the other one is unmerged")
    args = parser.parse_args()
    media, visual = 16 << 20, 4 << 20
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        made = copies([ADAPTERS["adapter-1"]], folder, 12)
        adapters = ADAPTERS | made
        server = serve(args.valora, adapters, filled(args.valora, made), "--mode", args.mode, "--swap-space", "8M",
                       "--allow-runtime-lora-updating", "--media-cache", str(media), "--visual-cache", str(visual), "--max-waiting", "256")
        reference = serve(args.valora, adapters, "64M")
        soak = Soak(server, reference, folder, adapters)
        soak.expect("adapter load", [200], "POST", "/v1/load_lora_adapter", {"lora_name": "swapped", "lora_path": ADAPTERS[SWAPPED[0]]})
        try:
            memory = run(soak, min(1, args.minutes) if args.short else args.minutes, lambda metrics: caches_full(metrics, media, visual))
            if server.process.poll() is None:
                judge_progress(soak, args.max_gap, not args.short)
        finally:
            if not end(server):
                soak.faults.append("SIGTERM did not end the server")
            end(reference)
    print("| request | outcome | times |\n|---|---|--:|")
    for (kind, outcome), times in sorted(soak.counts.items(), key=str):
        print(f"| {kind} | {outcome} | {times} |")
    print(f"\n{soak.checked} good answers compared with those given alone")
    if not args.short:
        judge_memory(soak, memory)
    for fault in soak.faults[:20]:
        print("fault:", fault)
    if soak.faults:
        raise SystemExit(f"{len(soak.faults)} faults")


if __name__ == "__main__":
    main()
