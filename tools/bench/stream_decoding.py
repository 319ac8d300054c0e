#!/usr/bin/env python3
"""Processor time that decoding of live streams takes: a file is read as a camera would send it by many streams at once, which
look at one frame per second and ask nothing. With all frames decoded, with these hardly looked at (which leaves the JPEG
encoder out), and with key frames alone.

The video is drawn: noise that moves, in H.264. Needs tools/requirements-demo.txt.

    .venv/bin/python tools/bench/stream_decoding.py --streams 32 --size 640x360 --rate 15 --key-interval 30
"""

import argparse
import json
import os
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy

from still_frames import ROOT, Server


def write(path, width, height, rate, key_interval, seconds):
    """A slow pan over a picture of smooth noise, with the noise of a sensor."""
    rng = numpy.random.default_rng(1)
    coarse = rng.integers(0, 255, (height // 20 + 20, width // 20 + 60, 3)).repeat(20, 0).repeat(20, 1)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=rate, options={"g": str(key_interval), "preset": "veryfast", "tune": "zerolatency"})
        stream.width, stream.height, stream.pix_fmt, stream.time_base = width, height, "yuv420p", Fraction(1, rate)
        for i in range(rate * seconds):
            x = i % 1000
            pixels = coarse[:height, x:x + width] + rng.normal(0, 3, (height, width, 1))
            file.mux(stream.encode(av.VideoFrame.from_ndarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8), "rgb24")))
        file.mux(stream.encode())


def spent(process):
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, source, options, fields):
    """Share of one core."""
    body = {"source": source, "skills": [{"model": "digits", "every": 3600}], "max_tokens": 1, **fields}
    streams = ["/v1/streams/" + server.ask("POST", "/v1/streams", body)["id"] for _ in range(options.streams)]
    time.sleep(5)  # connects, and the first questions
    before = spent(server.process.pid)
    time.sleep(options.seconds)
    used = spent(server.process.pid) - before
    seen = [server.ask("GET", path) for path in streams]
    assert all(stream["state"] == "running" for stream in seen), seen[0]
    for path in streams:
        server.ask("DELETE", path)
    return used / options.seconds, sum(stream["counts"]["frames"] for stream in seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "valora", type=Path)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--rate", type=int, default=15, help="frames per second of the camera")
    parser.add_argument("--key-interval", type=int, default=30, help="frames from one key frame to the next")
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    server = Server(options.program, 1, ["--streams-per-user", str(options.streams)])
    try:
        video = Path(server.folder.name) / "camera.mp4"  # in the folder whose files streams may read
        write(video, *map(int, options.size.split("x")), options.rate, options.key_interval, options.seconds + 20)
        for fields in {"fps": 1}, {"fps": 0.05}, {"fps": 1, "key_frames": True}:
            share, frames = measure(server, f"file://{video}", options, fields)
            print(json.dumps({**fields, "cores": round(share, 3), "frames": frames}), flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
