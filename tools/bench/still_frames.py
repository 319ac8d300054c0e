#!/usr/bin/env python3
"""What `skip_still` of a stream saves, and what it misses: the same drawn video is pushed to streams that ask about every
frame and to streams with several thresholds. With --blocks the same of `still_blocks`, whose streams read the video from a file.

The video shows a tray as in the demo's task `coins`, enlarged to that of a camera. Coins and cards are put down, taken away,
and slide by 0.3 to 8 % of the picture, with still frames between; every frame has sensor noise and is a JPEG file, and the
light changes slowly. Prints per threshold the share of frames that were skipped, of frames whose answer differs from the one
without skipping (in its text, and in its boxes: an overlap below 0.7), and of right answers; before that, how often the model
itself changes its answer about a scene that has not changed. With --blocks the share of blocks that were kept, instead of skipped.

    .venv/bin/python tools/bench/still_frames.py --frames 300 --brightness 1,0.25 --noise 0,4,12
"""

import argparse
import io
import itertools
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "demo"), str(ROOT / "tests" / "helpers")]

import boxes  # noqa: E402  (needs the paths above)
import movies  # noqa: E402
import scenes  # noqa: E402
from valora_server import Served  # noqa: E402

FELT = [(60, 75, 65), (75, 60, 55), (60, 65, 85)]
SCALE = 2  # pixels of the canvas per pixel


class Tray:
    """Things on a tray: (label, box in pixels, colours)."""

    def __init__(self, rng, side):
        self.rng, self.side, self.felt, self.things = rng, side, scenes.jitter(rng, scenes.pick(rng, FELT)), []
        self.put()

    def free(self, box, but=None):
        inside = min(box) >= 0 and max(box) <= self.side
        others = [thing[1] for thing in self.things if thing is not but]
        return inside and all(box[2] < b[0] or b[2] < box[0] or box[3] < b[1] or b[3] < box[1] for b in others)

    def put(self):
        for _ in range(40):
            size = self.rng.uniform(0.35, 0.48) * self.side
            x, y = self.rng.uniform(0, self.side - size, 2)
            box = (x, y, x + size, y + size)
            if self.free(box):
                colours = [(225, 180, 70), (195, 200, 205)], [(240, 240, 235)]
                label = scenes.pick(self.rng, ["coin", "card"])
                self.things.append([label, box, scenes.jitter(self.rng, scenes.pick(self.rng, colours[label == "card"]))])
                return

    def slide(self):
        thing = scenes.pick(self.rng, self.things)
        for _ in range(40):
            way, angle = self.rng.uniform(0.003, 0.08) * self.side, self.rng.uniform(0, 2 * math.pi)
            dx, dy = way * math.cos(angle), way * math.sin(angle)
            x0, y0, x1, y1 = thing[1]
            box = (x0 + dx, y0 + dy, x1 + dx, y1 + dy)
            if self.free(box, thing):
                thing[1] = box
                return

    def change(self):
        move = self.rng.integers(4)
        if move == 0 and len(self.things) > 1:
            self.things.pop(self.rng.integers(2))
        elif move == 1 and len(self.things) < 2:
            self.put()
        else:
            self.slide()

    def draw(self):
        image, draw = scenes.canvas(self.felt, self.side, self.side, SCALE)
        for label, box, fill in self.things:
            corners, edge = tuple(SCALE * v for v in box), int(SCALE * self.side / 32)
            if label == "coin":
                draw.ellipse(corners, fill=fill, outline=(110, 90, 50), width=edge)
            else:
                draw.rectangle(corners, fill=fill, outline=(210, 40, 45), width=edge)
        return numpy.asarray(image.reduce(SCALE), dtype=numpy.float32)

    def truth(self):
        things = sorted(self.things, key=lambda thing: thing[1][0])
        return boxes.write([(label, tuple(v / self.side for v in box)) for label, box, _ in things], labels=True)


def video(options, brightness, noise):
    """Yields (JPEG, the right answer)."""
    rng = numpy.random.default_rng(options.seed)
    tray = Tray(rng, options.side)
    picture = tray.draw()
    for k in range(options.frames):
        if k and rng.random() < options.changes:
            tray.change()
            picture = tray.draw()
        pixels = brightness * picture + options.light * math.sin(2 * math.pi * k / 100) + rng.normal(0, noise, picture.shape)
        data = io.BytesIO()
        Image.fromarray(numpy.clip(pixels + 0.5, 0, 255).astype(numpy.uint8)).save(data, "JPEG", quality=85)
        yield data.getvalue(), tray.truth()


class Server(Served):
    """The demo's tasks, with streams."""

    def __init__(self, program, threads, more=()):
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(program, "--model", "demo/model", "--manifest", "demo/manifest.json", "--threads", threads, "--streams-dir",
                         self.folder.name + "/streams", "--allowed-local-media-path", self.folder.name, *more, cwd=ROOT)

    def close(self):
        super().close()
        self.folder.cleanup()


ASKED = {"skills": ["coins"], "temperature": 0, "max_tokens": 48, "mm_processor_kwargs": {"max_pixels": 4096}}


class Watched:
    """A stream that asks about every frame, or skips still ones."""

    def __init__(self, server, threshold, at_most):
        self.server, self.answers = server, []
        rule = {} if threshold is None else {"skip_still": {"threshold": threshold, "at_most": at_most}}
        self.path = "/v1/streams/" + server.ask("POST", "/v1/streams", ASKED | {"source": "push"} | rule)["id"]

    def push(self, frame):
        self.server.ask("POST", self.path + "/frames", frame, "image/jpeg")

    def take(self, number):
        """Waits for the frame; notes its answer, or that the last one stands."""
        while True:
            counts = self.server.ask("GET", self.path)["counts"]
            if counts["answered"] + counts["still"] + counts["failed"] + counts["dropped"] == number:
                break
            time.sleep(0.002)
        assert counts["failed"] == counts["dropped"] == 0, counts
        events = [e for e in self.server.ask("GET", f"{self.path}/events?limit=1000&after={self.last}")["data"] if e["type"] == "answers"]
        self.answers.append(events[-1]["answers"]["coins"]["content"] if events else self.answers[-1])
        self.last = events[-1]["id"] if events else self.last
        self.still = counts["still"]

    last, still = 0, 0


class FromFile:
    """A stream that asks about every frame of a file, whose still blocks may be kept."""

    def __init__(self, server, file, threshold, at_most):
        rule = {} if threshold is None else {"still_blocks": {"threshold": threshold, "at_most": at_most}}
        self.path = "/v1/streams/" + server.ask("POST", "/v1/streams", ASKED | {"source": f"file://{file}", "realtime": False, "fps": 1} | rule)["id"]
        while (stream := server.ask("GET", self.path))["state"] not in ("ended", "failed"):
            time.sleep(0.05)
        assert stream["state"] == "ended" and stream["counts"]["failed"] == 0, stream
        events = server.ask("GET", f"{self.path}/events?limit=1000")["data"]
        self.answers = [e["answers"]["coins"]["content"] for e in events if e["type"] == "answers"]
        self.kept = stream["counts"]["still_blocks"]


def png(jpeg):
    data = io.BytesIO()
    Image.open(io.BytesIO(jpeg)).save(data, "PNG", compress_level=1)
    return data.getvalue()


def measure_blocks(server, options, brightness, noise):
    frames, truths = zip(*video(options, brightness, noise))
    file = Path(server.folder.name) / "video.avi"
    file.write_bytes(movies.avi([png(frame) for frame in frames], 1))
    every = None
    print(f"brightness {brightness:g}, noise {noise:g}")
    for threshold in [None, *options.thresholds]:
        stream = FromFile(server, file, threshold, options.at_most)
        every = every or stream.answers
        show(stream.answers, every, truths, threshold, f"kept {100 * stream.kept:5.1f} %")
        server.ask("DELETE", stream.path)


def show(answers, every, truths, threshold, saved):
    share = lambda hits: f"{100 * sum(hits) / len(truths):6.1f} %"
    name = "none" if threshold is None else f"{threshold:g}"
    print(f"  threshold {name:>5}  {saved}  other answers {share(a != b for a, b in zip(answers, every))}"
          f"  other boxes {share(a != b and not boxes.agree(a, b) for a, b in zip(answers, every))}"
          f"  right {share(boxes.agree(a, t) for a, t in zip(answers, truths))}", flush=True)


def measure(server, options, brightness, noise):
    ways = [None, *options.thresholds]
    streams = [Watched(server, threshold, options.at_most) for threshold in ways]
    truths = []
    for number, (frame, truth) in enumerate(video(options, brightness, noise), 1):
        for stream in streams:
            stream.push(frame)
        for stream in streams:
            stream.take(number)
        truths.append(truth)
    every = streams[0].answers
    pairs = [(a, b) for a, b, s, t in zip(every, every[1:], truths, truths[1:]) if s == t]
    print(f"brightness {brightness:g}, noise {noise:g}: of {len(pairs)} frames of an unchanged scene, asked one by one, "
          f"{100 * sum(a != b for a, b in pairs) / len(pairs):.1f} % have another answer than the frame before")
    for threshold, stream in zip(ways, streams):
        server.ask("DELETE", stream.path)
        show(stream.answers, every, truths, threshold, f"skipped {100 * stream.still / len(truths):5.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [float(part) for part in text.split(",")]
    parser.add_argument("--program", default=ROOT / "build" / "valora", type=Path)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--side", type=int, default=640, help="pixels of the picture")
    parser.add_argument("--noise", type=numbers, default=[0, 4, 12], help="standard deviations of a pixel's noise")
    parser.add_argument("--brightness", type=numbers, default=[1, 0.25], help="of the scene: below 1, contrasts are lower")
    parser.add_argument("--thresholds", type=numbers, default=[2, 4, 8, 16, 32])
    parser.add_argument("--changes", type=float, default=0.1, help="share of frames with a change")
    parser.add_argument("--light", type=float, default=3, help="amplitude of the slow change of light")
    parser.add_argument("--at-most", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", action="store_true", help="of still_blocks")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    server = Server(options.program, options.threads)
    try:
        for brightness, noise in itertools.product(options.brightness, options.noise):
            (measure_blocks if options.blocks else measure)(server, options, brightness, noise)
    finally:
        server.close()


if __name__ == "__main__":
    main()
