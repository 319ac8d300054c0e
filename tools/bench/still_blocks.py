#!/usr/bin/env python3
"""What `still_blocks` of a stream saves with a model that encodes pictures in tiles: a random checkpoint with the shapes of
SmolVLM-256M, which makes 13 tiles of a frame of 640 x 360 pixels.

A drawn video: a thing moves in the lower left quarter; the rest is still, with the noise of a sensor (0: a screen that is shared).
The file is read as fast as its frames are answered, with and without still blocks. Prints per frame: seconds, seconds of the vision
tower, tiles encoded, prompt tokens computed; and the share of blocks that were taken from the frame before.

    .venv/bin/python tools/bench/still_blocks.py --frames 12 --rounds 2
"""

import argparse
import io
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy
import transformers
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))  # before this folder, which has modules of the same names

import checkpoints  # noqa: E402
import families  # noqa: E402
import movies  # noqa: E402
from valora_server import Valora  # noqa: E402

WIDTH, HEIGHT = 640, 360


class Published(families.SmolVLM):
    """With the published settings of pictures, and the marks of as many tiles."""

    specials = [*families.SmolVLM.specials[:5], *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))]
    settings = dict(size={"longest_edge": 2048}, max_image_size={"longest_edge": 512})


def make_model(folder):
    family = Published()
    text = checkpoints.llama(family, 576, 9, 3, 30, 1536, True)
    config = transformers.SmolVLMConfig(
        text_config=text.to_dict(), scale_factor=4, image_token_id=family.special_id("<image>"), tie_word_embeddings=True,
        vision_config=dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, image_size=512,
                           patch_size=16))
    model = checkpoints.randomise(family.kind(config), 1).bfloat16()
    model.save_pretrained(folder)
    family.save(model, folder)
    return folder


def video(frames, noise, seed):
    """A file with one frame per second. Each seed has a background of its own."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    still = numpy.stack([110 + 60 * numpy.sin(x / (23 + 9 * c) + y / (31 - 4 * c) + seed) for c in range(3)], -1)
    pngs = []
    for k in range(frames):
        picture = still.copy()
        angle = 2 * math.pi * k / 9
        cx, cy = 0.22 * WIDTH + 60 * math.cos(angle), 0.75 * HEIGHT + 40 * math.sin(angle)
        picture[(x - cx) ** 2 + (y - cy) ** 2 < 24**2] = (220, 60, 40)
        picture += rng.normal(0, noise, picture.shape)
        data = io.BytesIO()
        Image.fromarray(numpy.clip(picture + 0.5, 0, 255).astype(numpy.uint8)).save(data, "PNG", compress_level=1)
        pngs.append(data.getvalue())
    return movies.avi(pngs, 1)


def totals(server):
    """(tiles encoded, seconds of the tower, prompt tokens, those found in the prefix cache)"""
    metrics = server.metrics()
    return numpy.array([metrics[name] for name in ("valora:visuals_encoded_total", "valora:visual_encode_seconds_total",
                                                   "vllm:prompt_tokens_total", "vllm:prefix_cache_hits_total")])


def watch(server, file, rule):
    before, begin = totals(server), time.perf_counter()
    body = {"source": f"file://{file}", "realtime": False, "fps": 1, "skills": [{"model": "base", "question": "What moves?"}],
            "temperature": 0, "max_tokens": 4, "ignore_eos": True} | ({"still_blocks": rule} if rule else {})
    path = "/v1/streams/" + server.ask("POST", "/v1/streams", body)["id"]
    while (stream := server.ask("GET", path))["state"] not in ("ended", "failed"):
        time.sleep(0.02)
    seconds, counts = time.perf_counter() - begin, stream["counts"]
    assert stream["state"] == "ended" and counts["failed"] == 0, stream
    server.ask("DELETE", path)
    tiles, tower, prompt, found = (totals(server) - before) / counts["answered"]
    return seconds / counts["answered"], tower, tiles, prompt - found, counts["still_blocks"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build" / "valora", type=Path)
    parser.add_argument("--folder", default=ROOT / "build" / "bench" / "smolvlm", type=Path)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--noise", type=lambda text: [float(part) for part in text.split(",")], default=[0, 4])
    parser.add_argument("--threshold", type=float, default=8)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if not (options.folder / "config.json").exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        make_model(options.folder)
    with tempfile.TemporaryDirectory() as folder:
        server = Valora(str(options.program), str(options.folder), [], options.threads, prefix_caching=True, step_tokens=None, model_len=2048,
                        more=["--streams-dir", f"{folder}/streams", "--allowed-local-media-path", folder])
        try:
            for noise in options.noise:
                for turn in range(options.rounds):
                    file = Path(folder) / f"{noise}-{turn}.avi"
                    for rule in (None, {"threshold": options.threshold, "at_most": 3600}):
                        # Another video per run: its frames must not be in the caches yet.
                        file.write_bytes(video(options.frames, noise, 2 * turn + bool(rule)))
                        seconds, tower, tiles, tokens, still = watch(server, file, rule)
                        print(f"noise {noise:g}, {'still blocks' if rule else 'whole frames':12}: {seconds:.2f} s per frame, tower {tower:.2f} s, "
                              f"{tiles:.1f} tiles encoded, {tokens:.0f} prompt tokens computed, {100 * still:.0f} % of the blocks kept", flush=True)
        finally:
            server.close()


if __name__ == "__main__":
    main()
