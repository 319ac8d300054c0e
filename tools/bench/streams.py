#!/usr/bin/env python3
"""Real-time video analytics: how many video streams one server can answer, with a head and with the language model.

Each stream sends one chunk of 30 frames per second as one request, even if the previous one is not answered yet. The
number of streams is doubled until a request fails or the 95th percentile of the latency, measured from the time a chunk
is due, exceeds a second. Then it is bisected. All chunks and frames differ, so that caches do not help.

    .venv/bin/python tools/bench/streams.py --task actions --seconds 10
"""

import argparse
import base64
import io
import json
import math
import os
import random
import sys
import threading
import time
import urllib.error
from pathlib import Path

import numpy
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "demo"))

import tasks  # noqa: E402  (needs the path above)
from places import places  # noqa: E402
from valora_server import Served  # noqa: E402

PERIOD = 1.0  # seconds between a stream's chunks
WARM_UP = 2   # chunks per stream that are not counted
MOST = 512    # streams


class Camera:
    """Chunks of frames: drawn clips of the task in random order, each frame file made unique by a number."""

    def __init__(self, task, clips, frames):
        rng = numpy.random.default_rng(3)
        self.clips = [[jpeg(frame) for frame in task.draw(rng).frames] for _ in range(clips)]
        self.frames, self.random, self.count, self.lock = frames, random.Random(3), 0, threading.Lock()

    def chunk(self):
        """The next chunk as a data: URL."""
        with self.lock:
            frames = []
            while len(frames) < self.frames:
                frames += self.random.choice(self.clips)
            begin, self.count = self.count, self.count + self.frames
        marked = (mark(frame, begin + k) for k, frame in enumerate(frames[:self.frames]))
        return "data:video/jpeg;base64," + ",".join(base64.b64encode(f).decode() for f in marked)


def jpeg(frame):
    buffer = io.BytesIO()
    Image.fromarray(frame).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def mark(data, number):
    """Inserts a comment after the first marker of a JPEG file."""
    return data[:2] + b"\xff\xfe\x00\x0a" + number.to_bytes(8, "big") + data[2:]


class Way:
    """How to request a chunk: the path, and body fields besides model and messages."""

    def __init__(self, name, path, extra):
        self.name, self.path, self.extra = name, path, extra

    def body(self, model, question, url):
        content = [{"type": "video_url", "video_url": {"url": url}}, {"type": "text", "text": question}]
        return json.dumps({"model": model, "messages": [{"role": "user", "content": content}]} | self.extra).encode()

    def read(self, answer):
        """Returns the number of prompt tokens, and the text or label."""
        text = answer["data"][0]["label"] if self.path == "/classify" else answer["choices"][0]["message"]["content"]
        return answer.get("usage", {}).get("prompt_tokens"), text


class Streams:
    """Runs concurrent streams. Each request has its own thread, so that a late answer does not delay later chunks."""

    def __init__(self, ask, camera, count, seconds):
        self.ask, self.camera, self.count, self.seconds = ask, camera, count, seconds
        self.latencies, self.errors, self.tokens, self.lock = [], [], None, threading.Lock()

    def one(self, url, due, counted):
        try:
            tokens, _ = self.ask(url)
            taken = time.perf_counter() - due
            with self.lock:
                self.tokens = tokens
                if counted:
                    self.latencies.append(taken)
        except (OSError, ValueError, KeyError, IndexError) as error:
            with self.lock:
                self.errors.append(reason(error))

    def run(self):
        chunks = WARM_UP + max(1, round(self.seconds / PERIOD))
        begin = time.perf_counter() + 0.1
        # Streams start at equal offsets within the period, like independent cameras on average.
        due = sorted((begin + PERIOD * (k + s / self.count), k) for k in range(chunks) for s in range(self.count))
        threads = []
        for at, k in due:
            url = self.camera.chunk()
            time.sleep(max(0.0, at - time.perf_counter()))
            thread = threading.Thread(target=self.one, args=(url, at, k >= WARM_UP))
            thread.start()
            threads.append(thread)
            if self.errors:
                break
        for thread in threads:
            thread.join()
        return self.row()

    def row(self):
        return {"streams": self.count, "requests": len(self.latencies), "errors": self.errors[:3], "prompt_tokens": self.tokens,
                "p50": percentile(self.latencies, 50), "p95": percentile(self.latencies, 95), "max": max(self.latencies, default=None),
                "real_time": not self.errors and bool(self.latencies) and percentile(self.latencies, 95) <= PERIOD}


def reason(error):
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}: {error.read().decode(errors='replace')[:200]}"
    return str(error) or type(error).__name__


def percentile(values, share):
    """Percentile by nearest rank."""
    return sorted(values)[math.ceil(len(values) * share / 100) - 1] if values else None


def seconds_text(value):
    return "      –" if value is None else f"{1000 * value:7.0f}"


def show(name, row):
    print(f"{name:<15} {row['streams']:>7} {row['requests']:>8} {seconds_text(row['p50'])} {seconds_text(row['p95'])} {seconds_text(row['max'])}  "
          f"{'yes' if row['real_time'] else 'no'}{''.join('  ' + e for e in row['errors'][:1])}", flush=True)


def raise_until_late(measure, first):
    """Doubles the streams, then bisects; returns the highest number of streams in real time, and all rows."""
    rows, good, bad, count = [], 0, None, first
    while bad is None or bad - good > max(1, good // 16):
        rows.append(measure(count))
        if rows[-1]["real_time"]:
            good = count
        else:
            bad = count
        if good >= MOST:
            break
        count = 2 * good if bad is None else (good + bad) // 2
    return good, rows


def alone(asks, camera, rounds):
    """Latency of single requests, alternating between the methods, and the counts of their
    answers."""
    taken, answers = [[] for _ in asks], [{} for _ in asks]
    for round_ in range(rounds + 1):  # the first round is a warm-up
        for way, ask in enumerate(asks):
            url = camera.chunk()
            begin = time.perf_counter()
            _, text = ask(url)
            if round_:
                taken[way].append(time.perf_counter() - begin)
                answers[way][text] = answers[way].get(text, 0) + 1
    return [{"p50": percentile(t, 50), "p95": percentile(t, 95), "answers": a} for t, a in zip(taken, answers)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "valora")
    parser.add_argument("--demo", type=Path, default=ROOT / "demo")
    parser.add_argument("--task", default="actions", help="a video task that has a head")
    parser.add_argument("--frames", type=int, default=30, help="frames per chunk")
    parser.add_argument("--seconds", type=float, default=10, help="seconds per measured number of streams")
    parser.add_argument("--first", type=int, default=1, help="initial number of streams")
    parser.add_argument("--clips", type=int, default=40, help="drawn clips that chunks are assembled from")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("more", nargs="*", help="after --: further options of `valora serve`")
    options = parser.parse_args()

    task, place = tasks.ALL[options.task], places(options.demo).get(options.task)
    if not place or not place.head or not task.video:
        raise SystemExit(f"{options.task} is not a video task with a head in {options.demo}")
    camera = Camera(task, options.clips, options.frames)
    server = Served(options.program, "--model", options.demo / "model", "--served-model-name", "base", "--threads", options.threads,
                    "--lora-modules", f"{place.adapter}={place.folder}", *options.more)
    ways = [Way("head", "/classify", {"head": place.head}),
            Way("language model", "/v1/chat/completions", {"head": "", "temperature": 0, "max_tokens": 16})]
    result = {"task": options.task, "frames": options.frames, "threads": options.threads, "seconds": options.seconds, "ways": {}}
    try:
        asks = [lambda url, way=way: way.read(server.ask("POST", way.path, way.body(place.adapter, task.question, url))) for way in ways]
        print("answered by     streams requests  p50 ms  p95 ms  max ms  in real time")
        for way, ask, single in zip(ways, asks, alone(asks, camera, 20)):
            def measure(count, ask=ask, way=way):
                row = Streams(ask, camera, count, options.seconds).run()
                show(way.name, row)
                return row

            most, rows = raise_until_late(measure, options.first)
            result["ways"][way.name] = {"most": most, "alone": single, "rows": rows}
    finally:
        server.close()
    for name, way in result["ways"].items():
        print(f"{name}: {way['most']} streams in real time; alone {1000 * way['alone']['p50']:.1f} ms a chunk at the median")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
