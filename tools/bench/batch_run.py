#!/usr/bin/env python3
"""`valora run` beside the same requests sent to a server, 64 at once: rows per second.

All pictures differ, so that caches do not help. Both begin when the model is loaded; the runs take turns, and the best
of each counts, because other programs only make a run slower.

    .venv/bin/python tools/bench/batch_run.py --pictures 600 --rounds 5
"""

import argparse
import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

import numpy
from PIL import Image

from valora_server import Valora

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
QUESTION = "Find all coins and cards."


def make_pictures(folder, count, seed=1):
    """The demo's pictures of coins, with noise that no two share."""
    random = numpy.random.default_rng(seed)
    bases = [numpy.asarray(Image.open(DEMO / "samples" / f"coins-{i}.png").convert("RGB"), dtype=int) for i in (1, 2, 3)]
    for i in range(count):
        pixels = numpy.clip(bases[i % 3] + random.integers(-6, 7, bases[i % 3].shape), 0, 255)
        Image.fromarray(pixels.astype(numpy.uint8)).save(folder / f"{i:05}.png")


def run_rate(program, folder, output, threads):
    done = subprocess.run([program, "--log-level", "warning", "run", "--model", DEMO / "model", "--manifest", DEMO / "manifest.json",
                           "--dtype", "float32", "--threads", str(threads), "--task", "coins", "--input", folder, "--output", output, "--fresh"],
                          capture_output=True, text=True, check=True)
    return float(re.search(r"([\d.]+) rows/s", done.stderr)[1])


def sent_rate(program, folder, threads, concurrency):
    server = Valora(program, DEMO / "model", [], threads, ["--manifest", str(DEMO / "manifest.json")], prefix_caching=True, step_tokens=None,
                    dtype="float32")
    bodies = []
    for path in sorted(folder.iterdir()):
        picture = "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
        content = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": QUESTION}]
        bodies.append({"model": "coins", "temperature": 0, "response_format": {"type": "boxes"}, "messages": [{"role": "user", "content": content}]})
    waiting, lock = list(enumerate(bodies)), threading.Lock()
    answers = [None] * len(bodies)

    def client():
        while True:
            with lock:
                if not waiting:
                    return
                index, body = waiting.pop()
            answers[index] = json.loads(server.post("/v1/chat/completions", body)[2])["choices"]

    begin = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begin
    server.close()
    assert all(answers)
    return len(bodies) / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "valora")
    parser.add_argument("--pictures", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root) / "pictures"
        folder.mkdir()
        make_pictures(folder, flags.pictures)
        runs, sent = [], []
        for _ in range(flags.rounds):
            runs.append(run_rate(flags.program, folder, pathlib.Path(root) / "out.jsonl", flags.threads))
            sent.append(sent_rate(flags.program, folder, flags.threads, flags.concurrency))
            print(f"run {runs[-1]:7.1f} rows/s   sent {sent[-1]:7.1f} rows/s", flush=True)
    print(f"best: run {max(runs):.1f}, sent {max(sent):.1f}, ratio {max(runs) / max(sent):.3f}")


if __name__ == "__main__":
    main()
