"""Drawn pictures, clips and films as data URLs, and their decoding with PIL."""

import base64
import io

import numpy as np
from PIL import Image

import movies


def draw(seed, width, height):
    """Colour ramps, a disc and noise: all patches differ."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [np.sin(x * rng.uniform(0.02, 0.4) + y * rng.uniform(0.02, 0.4) + rng.uniform(0, 6)) for _ in range(3)]
    pixels = np.stack(planes, -1) * 100 + 128 + rng.normal(0, 8, (height, width, 3))
    cx, cy = rng.uniform(0, width), rng.uniform(0, height)
    pixels[(x - cx) ** 2 + (y - cy) ** 2 < (min(width, height) / 3) ** 2] = rng.integers(0, 256, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def png(image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def picture(seed, width=56, height=56):
    """An image part."""
    return {"image": "data:image/png;base64," + base64.b64encode(png(draw(seed, width, height))).decode()}


def clip(seed, frames, width=56, height=56, **settings):
    """A video part as a list of frames, with the part's settings."""
    return clip_of(range(seed, seed + frames), width, height, **settings)


def clip_of(seeds, width=56, height=56, **settings):
    """The same with frames of these seeds. The frames are PNG, so that both sides see the same pixels."""
    encoded = [base64.b64encode(png(draw(seed, width, height))).decode() for seed in seeds]
    return {"video": "data:video/jpeg;base64," + ",".join(encoded)} | settings


def film(seed, frames, rate, width=56, height=56):
    """A video part as a file with `rate` frames per second."""
    file = movies.avi([png(draw(seed + i, width, height)) for i in range(frames)], rate)
    return {"video": "data:video/x-msvideo;base64," + base64.b64encode(file).decode()}


def decode(url):
    """The picture or frames behind a data: or file:// URL."""
    if url.startswith("file://"):
        return [Image.open(url.removeprefix("file://")).convert("RGB")]
    items = [base64.b64decode(item) for item in url.split("base64,")[1].split(",")]
    if is_film(url):
        items, _ = movies.read_avi(items[0])
    return [Image.open(io.BytesIO(item)).convert("RGB") for item in items]


def is_film(url):
    return url.startswith("data:video/x-msvideo")


def rate_of(url):
    """Frames per second of a film."""
    return movies.read_avi(base64.b64decode(url.split("base64,")[1]))[1]
