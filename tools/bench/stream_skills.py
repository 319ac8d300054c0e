#!/usr/bin/env python3
"""Several skills on a live camera: how many of its frames are answered, and how late, with plain adapters, with activated
adapters, and with still frames skipped; and by a server with vLLM's interface that is asked about the newest frame in a loop.

A random Qwen2-VL checkpoint with a decoder of 0.5 B in bf16, as for skills.py. The camera sends a JPEG file at equal intervals;
a share of its frames shows another scene, and all have noise. valora's streams get the frames pushed. The loop sends one
chat per skill, all at once, and takes the newest frame when all are answered. Ways take turns. vLLM serves the same folder, which --make writes,
with the plain adapters:

    .venv/bin/python tools/bench/stream_skills.py --make
    vllm serve build/bench/skills/model --served-model-name base --enable-lora --max-loras 8 --lora-modules a0=build/bench/skills/adapter-0 …
    .venv/bin/python tools/bench/stream_skills.py --vllm http://127.0.0.1:8000 --skills 4 --seconds 60
"""

import argparse
import base64
import io
import itertools
import json
import statistics
import tempfile
import threading
import time
import urllib.error
import urllib.request

import numpy
from PIL import Image

import checkpoints
from activated_lora import INVOCATION, activated
from valora_server import Valora, at_once

QUESTION = "What is it?" + INVOCATION
VISUAL_TOKENS_SIDE = 28  # pixels


class Camera:
    """The frames of a run: (seconds after the start, JPEG file). All runs see the same changes, but other scenes and other noise,
    so that no cache knows their frames."""

    def __init__(self, side, count, period, changes, run):
        changing, rng = numpy.random.default_rng(1), numpy.random.default_rng([2, run])
        self.frames, scene = [], None
        for k in range(count):
            if changing.random() < changes or scene is None:
                scene = numpy.kron(rng.integers(40, 215, (8, 8, 3)), numpy.ones((side // 8, side // 8, 1)))
            data = io.BytesIO()
            Image.fromarray(numpy.clip(scene + rng.normal(0, 4, scene.shape), 0, 255).astype(numpy.uint8)).save(data, "JPEG", quality=85)
            self.frames.append((k * period, data.getvalue()))

    def play(self, show):
        """Calls show(frame) when each is due."""
        begin = time.perf_counter()
        for due, frame in self.frames:
            time.sleep(max(0.0, begin + due - time.perf_counter()))
            show(frame)


class Stream:
    """A stream of valora that the frames are pushed to."""

    def __init__(self, name, server, skills, tokens, more):
        self.name, self.server, self.body = name, server, {
            "source": "push", "fps": 60, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            "skills": [{"model": skill, "question": QUESTION} for skill in skills]} | more

    def ask(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(self.server.url + path, body, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def run(self, camera):
        """Returns the frames that were answered or skipped as still, and the lags of those answered, in seconds."""
        path = "/v1/streams/" + self.ask("POST", "/v1/streams", json.dumps(self.body).encode())["id"]
        camera.play(lambda frame: self.ask("POST", path + "/frames", frame, "image/jpeg"))
        while True:
            counts = self.ask("GET", path)["counts"]
            if sum(counts[kind] for kind in ("answered", "still", "failed", "dropped")) == len(camera.frames):
                break
            time.sleep(0.05)
        events = [event for event in self.ask("GET", path + "/events?limit=1000")["data"] if event["type"] == "answers"]
        self.ask("DELETE", path)
        wrong = [event for event in events if "error" in event or any("error" in answer for answer in event["answers"].values())]
        assert not wrong and not counts["failed"], wrong[:1]
        return counts["answered"] + counts["still"], counts["still"], [event["lag"] for event in events]


class Loop:
    """A client that asks a server about the newest frame as soon as the last one is answered."""

    def __init__(self, name, url, skills, tokens):
        self.name, self.url, self.skills, self.tokens = name, url, skills, tokens

    def chat(self, skill, frame):
        url = "data:image/jpeg;base64," + base64.b64encode(frame).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": QUESTION}]
        body = {"model": skill, "messages": [{"role": "user", "content": content}], "max_tokens": self.tokens, "temperature": 0, "ignore_eos": True}
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            usage = json.load(response)["usage"]
        assert usage["completion_tokens"] == self.tokens, usage

    def answer(self, frame):
        failed = []

        def ask(i):
            try:
                self.chat(self.skills[i], frame)
            except Exception as error:
                failed.append(error)

        at_once(ask, len(self.skills))
        if failed:
            raise failed[0]

    def run(self, camera):
        newest, lags, there, over, faults = [None], [], threading.Condition(), threading.Event(), []

        def show(frame):
            with there:
                newest[0] = (frame, time.perf_counter())
                there.notify()

        def work():
            while True:
                with there:
                    there.wait_for(lambda: newest[0] or over.is_set())
                    if not newest[0]:
                        return
                    (frame, shown), newest[0] = newest[0], None
                try:
                    self.answer(frame)
                except Exception as error:
                    faults.append(error)
                    return
                lags.append(time.perf_counter() - shown)

        worker = threading.Thread(target=work)
        worker.start()
        camera.play(show)
        over.set()
        with there:
            there.notify()
        worker.join()
        if faults:
            raise SystemExit(f"{self.name}: {faults[0]}")
        return len(lags), 0, lags


def show_row(name, frames, results):
    answered, still = (sum(result[i] for result in results) for i in (0, 1))
    lags = sorted(lag for result in results for lag in result[2])
    print(f"{name:32} {100 * answered / frames:5.1f} % of {frames} frames answered ({100 * still / frames:.1f} % still), "
          f"lag {1e3 * statistics.median(lags):6.0f} ms, p95 {1e3 * lags[int(0.95 * (len(lags) - 1))]:6.0f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--skills", type=int, default=4)
    parser.add_argument("--side", type=int, default=448, help="of a frame")
    parser.add_argument("--tokens", type=int, default=8, help="of an answer")
    parser.add_argument("--fps", type=float, default=1)
    parser.add_argument("--seconds", type=float, default=30, help="per way and round")
    parser.add_argument("--window", type=json.loads, action="append", help="of the streams of valora, as JSON; each adds a way with the activated adapters")
    parser.add_argument("--changes", type=float, default=0.25, help="share of frames that show another scene")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vllm", help="URL of a server with the same checkpoint as `base` and the plain adapters as a0, a1, …")
    parser.add_argument("--only", default="", help="ways whose names contain this text")
    parser.add_argument("--folder", default="build/bench/skills", help="where the checkpoint is kept")
    parser.add_argument("--make", action="store_true", help="write the checkpoint and end")
    options = parser.parse_args()
    model, plain = checkpoints.make(options.folder, tower=True, adapters=8, rank=16)
    if options.make:
        return
    first = checkpoints.DECODER["eos_token_id"] - checkpoints.SPECIAL.index("<|im_end|>")
    names = checkpoints.SPECIAL + checkpoints.VISUAL
    invocation = [first + names.index(f"<|object_ref_{end}|>") for end in ("start", "end")]
    runs = itertools.count()
    camera = lambda: Camera(options.side, round(options.seconds * options.fps), 1 / options.fps, options.changes, next(runs))
    with tempfile.TemporaryDirectory() as streams:
        server = Valora(options.program, model, [*plain, *activated(options.folder, plain, invocation)], options.threads, prefix_caching=True,
                        step_tokens=None, model_len=4096, more=["--streams-dir", streams])
        count = options.skills
        acting, plain_names = [f"a{i}" for i in range(8, 8 + count)], [f"a{i}" for i in range(count)]
        ways = [Stream("valora, plain", server, plain_names, options.tokens, {}),
                Stream("valora, activated", server, acting, options.tokens, {}),
                Stream("valora, activated, still skipped", server, acting, options.tokens, {"skip_still": True})]
        ways += [Stream(f"valora, activated, window {json.dumps(window)}", server, acting, options.tokens, {"window": window})
                 for window in options.window or []]
        if options.vllm:
            ways.append(Loop("vLLM, plain", options.vllm, plain_names, options.tokens))
        ways = [way for way in ways if options.only in way.name]
        results = {way.name: [] for way in ways}
        try:
            for way in ways:
                way.run(Camera(options.side, 1, 1, 0, next(runs)))
            for _ in range(options.rounds):
                for way in ways:
                    results[way.name].append(way.run(camera()))
        finally:
            server.close()
    print(f"{count} skills, {(options.side // VISUAL_TOKENS_SIDE) ** 2} visual tokens, {options.tokens} tokens per answer, "
          f"{options.fps:g} frames per second, {100 * options.changes:g} % of them another scene")
    for name, rows in results.items():
        show_row(name, round(options.seconds * options.fps) * len(rows), rows)


if __name__ == "__main__":
    main()
