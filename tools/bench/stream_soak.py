#!/usr/bin/env python3
"""Many live streams with faulty cameras along with chats: no answer may be wrong, chats must stay fast, memory must stay flat.

Serves the demo's tasks. Cameras send MJPEG over HTTP, one picture of each stream per second, and at random fall silent, end,
refuse, change the size, the codec (PNG in the same stream) or send rubbish; at times all of them are gone. Other streams are
pushed, and some are begun and deleted again and again. Every stream has two skills, one with an event, and posts signed
webhooks. Chats ask about new pictures with all tasks, and are compared with the answers of the same server before the streams
begin. Answers of streams are compared with those of a chat about the frame that the server gives.

Resident memory is sampled every second; its median in the last fifth must be at most 3 % above that in the second. SIGTERM must
end the server.

    .venv/bin/python tools/bench/stream_soak.py --minutes 60 --streams 64
"""

import argparse
import base64
import collections
import hashlib
import hmac
import http.client
import http.server
import io
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy
from PIL import Image

from soak import judge_memory
from valora_server import Served

ROOT = Path(__file__).resolve().parents[2]
SECRET = "soak"
TASKS = json.loads((ROOT / "demo/manifest.json").read_text())["tasks"]
PICTURE_TASKS = sorted(name for name, task in TASKS.items() if task.get("prompt") and (ROOT / f"demo/samples/{name}-1.png").exists())
FAULTS = ["none", "none", "silent", "end", "404", "size", "codec", "rubbish"]
BOXES = {"response_format": {"type": "boxes"}}


def varied(rng):
    """A sample of a task with noise, of a random size, as a picture."""
    task = rng.choice(PICTURE_TASKS)
    with Image.open(ROOT / f"demo/samples/{task}-{rng.randint(1, 3)}.png") as sample:
        side = rng.choice([64, 80, 96])
        pixels = numpy.asarray(sample.convert("RGB").resize((side, side)), dtype=numpy.float32)
    noise = numpy.random.default_rng(rng.randrange(1 << 30)).normal(0, 3, pixels.shape)
    return Image.fromarray(numpy.clip(pixels + noise, 0, 255).astype(numpy.uint8))


def encoded(image, form="JPEG"):
    data = io.BytesIO()
    image.save(data, form)
    return data.getvalue()


class Cameras(http.server.ThreadingHTTPServer):
    """MJPEG for GET /NUMBER, and the receiver of webhooks for POST."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, seed):
        super().__init__(("127.0.0.1", 0), CameraHandler)
        self.random, self.lock, self.gone = random.Random(seed), threading.Lock(), threading.Event()
        self.counts = collections.Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, kind):
        with self.lock:
            self.counts[kind] += 1

    def handle_error(self, *_):  # clients leave at any time
        pass


class CameraHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with self.server.lock:
            rng = random.Random(self.server.random.random())
        fault = rng.choice(FAULTS)
        self.server.count(f"connections, {fault}")
        if fault == "404" or self.server.gone.is_set():
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        for i in range(rng.randint(20, 120) if fault != "none" else 10_000):
            if self.server.gone.is_set():
                return
            self.send_part(rng, fault if i >= 10 else "none")
            time.sleep(1)
        if fault == "silent":
            time.sleep(rng.uniform(5, 20))

    def send_part(self, rng, fault):
        image = varied(rng)
        if fault == "size":
            image = image.resize((rng.randint(40, 160), rng.randint(40, 160)))
        part = encoded(image, "PNG" if fault == "codec" else "JPEG")
        if fault == "rubbish" and rng.random() < 0.5:
            part = bytes(rng.randbytes(200)) + part[:len(part) // 2]
        self.wfile.write(b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(part) + part + b"\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        right = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        self.server.count("webhooks" if hmac.compare_digest(self.headers.get("X-Valora-Signature", ""), right) else "webhooks with a wrong signature")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(Served):
    def __init__(self, program, streams, dtype):
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(program, "--model", "demo/model", "--manifest", "demo/manifest.json", "--streams-dir", self.folder.name + "/streams",
                         "--max-streams", streams + 8, "--streams-per-user", streams + 8, "--allow-media-urls", "--allowed-media-domains",
                         "127.0.0.1", "--media-cache", "32M", "--visual-cache", "16M", "--pool-memory", "128M", "--dtype", dtype,
                         log_level="error", cwd=ROOT)

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, bytes)"""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=120)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": kind})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def chat(self, task, picture, form="jpeg"):
        """(answer, seconds)"""
        url = f"data:image/{form};base64," + base64.b64encode(picture).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": TASKS[task]["prompt"]}]
        body = {"model": task, "temperature": 0, "max_tokens": 24, "messages": [{"role": "user", "content": content}]}
        body |= BOXES if task == "coins" else {}
        begin = time.perf_counter()
        status, answer = self.ask("POST", "/v1/chat/completions", body)
        if status != 200:
            return f"{status} {answer[:200]!r}", 0
        return json.loads(answer)["choices"][0]["message"]["content"], time.perf_counter() - begin

    def end(self):
        """Returns True if SIGTERM ends the server."""
        self.process.terminate()
        try:
            return self.process.wait(60) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False
        finally:
            self.folder.cleanup()


class Soak:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.cameras, self.over = Cameras(1), threading.Event()
        self.lock, self.counts, self.faults = threading.Lock(), collections.Counter(), []
        self.latencies, self.streams = [], {}
        rng = random.Random(2)
        self.known = []  # (task, picture, answer)
        for _ in range(60):
            task, picture = rng.choice(PICTURE_TASKS), encoded(varied(rng))
            self.known.append((task, picture, server.chat(task, picture)[0]))

    def note(self, kind, fault=None):
        with self.lock:
            self.counts[kind] += 1
            if fault:
                self.faults.append(f"{kind}: {fault}"[:400])

    def begin(self, source, rng):
        watched = rng.sample([task for task in PICTURE_TASKS if task != "coins"], 1)[0]
        body = {"source": source, "fps": 1, "temperature": 0, "max_tokens": 24, "webhook": {"url": self.cameras.url, "secret": SECRET},
                "skills": [watched, {"model": "coins", "event": {"when": {"boxes": {"min": 1}}, "start_after": 2}} | BOXES]}
        if rng.random() < 0.2:
            body["skip_still"] = True
        status, answer = self.server.ask("POST", "/v1/streams", body)
        if status != 200:
            self.note("streams that could not begin", f"{status} {answer[:200]!r}")
            return None
        self.note("streams begun")
        return "/v1/streams/" + json.loads(answer)["id"]

    def begin_all(self):
        rng = random.Random(3)
        for i in range(self.options.streams):
            source = "push" if i % 8 == 0 else f"{self.cameras.url}/{i}"
            if path := self.begin(source, rng):
                self.streams[path] = source

    # ---- threads; each runs until the time is over ----

    def repeat(self, work, seed, pause):
        rng = random.Random(seed)
        while not self.over.is_set():
            try:
                work(rng)
            except Exception as error:
                self.note(type(error).__name__, repr(error))
            self.over.wait(pause * rng.uniform(0.5, 1.5))

    def ask(self, rng):
        task, picture, expected = rng.choice(self.known)
        answer, seconds = self.server.chat(task, picture)
        self.note("chats", None if answer == expected else f"{task}: {answer!r}, before {expected!r}")
        with self.lock:
            self.latencies.append((time.monotonic(), seconds))

    def push(self, rng):
        for path in [path for path, source in self.streams.items() if source == "push"]:
            form = rng.choice(["JPEG", "PNG"])
            status, answer = self.server.ask("POST", path + "/frames", encoded(varied(rng), form), f"image/{form.lower()}")
            self.note("frames pushed", None if status == 200 else f"{status} {answer[:200]!r}")

    def compare(self, rng):
        path = rng.choice(list(self.streams))
        events = json.loads(self.server.ask("GET", path + "/events?limit=1000")[1])["data"]
        answered = [event for event in events if event["type"] == "answers" and "answers" in event]
        if not answered:
            return
        status, frame = self.server.ask("GET", f"{path}/frames/{answered[-1]['frame']}")
        if status != 200:
            return self.note("frames forgotten")  # a newer one has come
        form = "png" if frame.startswith(b"\x89PNG") else "jpeg"
        for task, answer in answered[-1]["answers"].items():
            alone = self.server.chat(task, frame, form)[0]
            self.note("stream answers compared", None if answer.get("content") == alone else f"{path} {task}: {answer!r}, a chat {alone!r}")

    def churn(self, rng):
        path = self.begin(rng.choice(["push", f"{self.cameras.url}/{rng.random()}"]), rng)
        if not path:
            return
        self.over.wait(rng.uniform(0, 3))
        for method, more in rng.choice([[], [("POST", "/pause"), ("POST", "/resume")], [("GET", ""), ("GET", "/events?limit=5")]]):
            status, answer = self.server.ask(method, path + more)
            self.note("stream calls", None if status == 200 else f"{status} {answer[:200]!r}")
        status, _ = self.server.ask("DELETE", path)
        self.note("streams deleted", None if status == 200 else str(status))

    def outage(self, rng):
        self.cameras.gone.set()
        self.over.wait(rng.uniform(5, 20))
        self.cameras.gone.clear()
        self.note("outages of all cameras")

    def run(self):
        works = [(self.ask, 0.3), (self.ask, 0.3), (self.push, 1), (self.compare, 2), (self.churn, 5), (self.outage, 300)]
        threads = [threading.Thread(target=self.repeat, args=(work, seed, pause)) for seed, (work, pause) in enumerate(works)]
        memory, end = [], time.monotonic() + 60 * self.options.minutes
        for thread in threads:
            thread.start()
        while time.monotonic() < end and self.server.process.poll() is None:
            time.sleep(1)
            memory.append(self.server.memory())
            if len(memory) % 300 == 0:
                self.show(memory[-300:])
        self.over.set()
        for thread in threads:
            thread.join()
        return memory

    def show(self, memory):
        with self.lock:
            late = sorted(seconds for at, seconds in self.latencies if at > time.monotonic() - 300)
        at = lambda share: 1e3 * late[int(share * (len(late) - 1))] if late else 0
        states = json.loads(self.server.ask("GET", "/v1/stats")[1])["streams"]["states"]
        print(f"memory {statistics.median(memory):.0f} MiB; chats {at(0.5):.0f} ms, p95 {at(0.95):.0f}, p99 {at(0.99):.0f}; {states}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "valora")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--dtype", default="float32", help="in 16 bits, the order of sums changes a few answers")
    options = parser.parse_args()
    server = Server(options.program, options.streams, options.dtype)
    soak = None
    try:
        soak = Soak(server, options)
        soak.begin_all()
        memory = soak.run()
        judge_memory(soak, memory)
    finally:
        if not server.end() and soak:
            soak.faults.append("SIGTERM did not end the server")
    for kind, count in sorted((soak.counts + soak.cameras.counts).items()):
        print(f"  {count:7} {kind}")
    if wrong := soak.cameras.counts["webhooks with a wrong signature"]:
        soak.faults.append(f"{wrong} webhooks with a wrong signature")
    for kind, least in (("chats", 10), ("stream answers compared", 2), ("frames pushed", 10)):
        if soak.counts[kind] < least * options.minutes:
            soak.faults.append(f"only {soak.counts[kind]} {kind}")
    if soak.cameras.counts["webhooks"] < options.minutes:
        soak.faults.append("hardly any webhook came")
    for fault in soak.faults[:20]:
        print("fault:", fault)
    print(f"{len(soak.faults)} faults")
    sys.exit(bool(soak.faults))


if __name__ == "__main__":
    main()
