"""Draws the pictures of the image adapters' tasks (traffic lights, cars, surfaces) and loads real digits."""

import functools
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from scenes import COLOURS, canvas, finish, jitter, pick

SIZE = 64
S = 2 * SIZE  # the canvas is drawn at twice the size and scaled down


NIGHT = (45, 50, 80)
SKIES = [(170, 205, 235), (120, 140, 170), (235, 190, 150), NIGHT]


@dataclass
class Street:
    horizon: int              # the road's upper edge on the canvas
    night: bool
    crown: tuple | None = None  # box of the tree's crown on the canvas


def street(rng, draw):
    """Sky, houses, a tree and a road."""
    horizon = int(rng.uniform(0.5, 0.7) * S)
    sky = pick(rng, SKIES)
    seen = Street(horizon, sky is NIGHT)
    draw.rectangle((0, 0, S, horizon), fill=jitter(rng, sky))
    draw.rectangle((0, horizon, S, S), fill=jitter(rng, pick(rng, [(95, 95, 100), (120, 115, 110), (70, 72, 78)])))
    for _ in range(rng.integers(0, 3)):
        x, w, h = rng.uniform(-10, S - 20), rng.uniform(20, 44), rng.uniform(16, 44)
        wall = jitter(rng, pick(rng, [(190, 170, 150), (150, 90, 80), (205, 200, 190), (110, 120, 130)]))
        draw.rectangle((x, horizon - h, x + w, horizon), fill=wall)
        for k in range(2):
            draw.rectangle((x + 4 + k * w / 2, horizon - h + 4, x + 4 + k * w / 2 + w / 5, horizon - h + 12), fill=jitter(rng, (80, 90, 110)))
    if rng.random() < 0.4:
        x = rng.uniform(5, S - 15)
        draw.rectangle((x + 4, horizon - 18, x + 8, horizon), fill=(95, 65, 40))
        seen.crown = (x - 5, horizon - 38, x + 17, horizon - 12)
        draw.ellipse(seen.crown, fill=jitter(rng, (60, 125, 60)))
    return seen


LIGHTS = {"stop": (0, (255, 45, 40)), "caution": (1, (255, 205, 40)), "go": (2, (50, 225, 90)), "off": (None, None)}


def traffic_light(rng, label):
    image, draw = canvas((0, 0, 0), SIZE, SIZE)
    street(rng, draw)
    radius = rng.uniform(8, 12)
    w, h = radius * 2.9, radius * 7.6
    x, y = rng.uniform(4, S - w - 4), rng.uniform(4, max(5, S * 0.62 - h))
    draw.rectangle((x + w / 2 - 2, y + h, x + w / 2 + 2, S), fill=(60, 60, 64))
    draw.rounded_rectangle((x, y, x + w, y + h), radius=4, fill=jitter(rng, (38, 38, 42), 8))
    dim = [(70, 22, 22), (70, 58, 20), (20, 62, 32)]
    lit, colour = LIGHTS[label]
    for k in range(3):
        cx, cy = x + w / 2, y + h * (k + 0.5) / 3
        fill = jitter(rng, colour, 18) if k == lit else jitter(rng, dim[k], 8)
        draw.ellipse((cx - radius, cy - radius, cx + radius, cy + radius), fill=fill)
    return [finish(rng, image)]


@dataclass
class Parked:
    """A car on a street; its box is in pixels."""
    frames: list
    box: tuple
    colour: str
    street: Street

    def hides_tree(self):
        """True if the car hides most of the tree."""
        if not self.street.crown:
            return False
        a, b, c, d = self.street.crown
        x0, y0, x1, y1 = (2 * v for v in self.box)
        inner = max(0, min(c, x1) - max(a, x0)) * max(0, min(d, y1) - max(b, y0))
        return inner > 0.5 * (c - a) * (d - b)


def car(rng):
    image, draw = canvas((0, 0, 0), SIZE, SIZE)
    seen = street(rng, draw)
    w = rng.uniform(50, 88)
    h = w * rng.uniform(0.5, 0.6)
    x = rng.uniform(2, S - w - 2)
    y = rng.uniform(max(2, seen.horizon - h * 0.8), S - h - 2)
    colour = pick(rng, list(COLOURS))
    paint = jitter(rng, COLOURS[colour])
    flip = rng.random() < 0.5
    fx = lambda a: x + w * (1 - a if flip else a)
    wheel = h * 0.2
    roof = [(0.2, 0.45), (0.32, 0.0), (0.68, 0.0), (0.86, 0.45)]
    draw.polygon([(fx(a), y + h * b) for a, b in roof], fill=paint)
    glass = [(0.27, 0.43), (0.35, 0.08), (0.65, 0.08), (0.77, 0.43)]
    draw.polygon([(fx(a), y + h * b) for a, b in glass], fill=jitter(rng, (150, 195, 220)))
    draw.rounded_rectangle((x, y + h * 0.42, x + w, y + h * 0.84), radius=4, fill=paint)
    for a in (0.22, 0.78):
        cx, cy = fx(a), y + h - wheel
        draw.ellipse((cx - wheel, cy - wheel, cx + wheel, cy + wheel), fill=(22, 22, 24))
        draw.ellipse((cx - wheel * 0.4, cy - wheel * 0.4, cx + wheel * 0.4, cy + wheel * 0.4), fill=(170, 170, 175))
    return Parked([finish(rng, image)], (x / 2, y / 2, (x + w) / 2, (y + h) / 2), colour, seen)


def surface(rng, label):
    base = jitter(rng, pick(rng, [(165, 165, 170), (190, 165, 130), (120, 140, 160), (150, 175, 150), (200, 190, 180)]))
    image, draw = canvas(base, SIZE, SIZE)
    dark = tuple(int(v * rng.uniform(0.86, 0.93)) for v in base)
    step, kind = rng.integers(8, 18), rng.integers(4)
    phase = rng.integers(step)
    for a in range(-S + phase, 2 * S, int(step)):
        if kind == 0:
            draw.line((a, 0, a, S), fill=dark, width=3)
        elif kind == 1:
            draw.line((a, 0, a + S * 0.7, S), fill=dark, width=3)
        elif kind == 2:
            draw.line((a, 0, a, S), fill=dark, width=2)
            draw.line((0, a, S, a), fill=dark, width=2)
        else:
            for b in range(int(phase), S, int(step)):
                draw.ellipse((a - 2, b - 2, a + 2, b + 2), fill=dark)
    cx, cy = rng.uniform(0.25, 0.75, 2) * S
    angle = rng.uniform(0, math.pi)
    dx, dy = math.cos(angle), math.sin(angle)
    if label == "scratch":  # a straight bright line
        n = rng.uniform(26, 46)
        draw.line((cx - n * dx, cy - n * dy, cx + n * dx, cy + n * dy), fill=jitter(rng, (238, 238, 240), 8), width=int(rng.integers(3, 5)))
    elif label == "crack":  # a dark zigzag
        n, points = rng.uniform(30, 50), []
        for t in np.linspace(-1, 1, 8):
            off = rng.uniform(-9, 9)
            points.append((cx + n * t * dx - off * dy, cy + n * t * dy + off * dx))
        draw.line(points, fill=jitter(rng, (45, 40, 40), 8), width=int(rng.integers(3, 5)))
    elif label == "hole":  # a black disc with a rim
        r = rng.uniform(8, 17)
        draw.ellipse((cx - r - 3, cy - r - 3, cx + r + 3, cy + r + 3), fill=dark)
        draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=(18, 16, 16))
    elif label == "stain":  # a soft blot that lets the texture through
        layer = Image.new("L", (S, S), 0)
        pen = ImageDraw.Draw(layer)
        for _ in range(6):
            r, ox, oy = rng.uniform(9, 18), *rng.uniform(-14, 14, 2)
            pen.ellipse((cx + ox - r, cy + oy - r, cx + ox + r, cy + oy + r), fill=int(rng.uniform(110, 160)))
        tint = Image.new("RGB", (S, S), jitter(rng, pick(rng, [(110, 70, 30), (70, 90, 40), (60, 60, 120), (120, 40, 60)])))
        image.paste(tint, mask=layer.filter(ImageFilter.GaussianBlur(4)))
    return [finish(rng, image)]


@functools.lru_cache(maxsize=1)
def digits():
    """Real handwritten digits as (pictures, labels), for training and the held-out fifth, split with a fixed
    seed."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    data = load_digits()
    a, b, la, lb = train_test_split(data.images, data.target, test_size=0.2, random_state=0, stratify=data.target)
    return (a, la), (b, lb)


def digit(rng, image, move=False):
    """Enlarges one 8 x 8 digit; for training, also shifts and rotates it a little."""
    picture = Image.fromarray((image * (255 / 16)).astype(np.uint8)).resize((56, 56), Image.BICUBIC)
    page, at = Image.new("L", (SIZE, SIZE), 0), (4, 4)
    if move:
        picture = picture.rotate(rng.uniform(-9, 9), Image.BICUBIC)
        at = tuple(int(v) for v in rng.integers(1, 8, 2))
    page.paste(picture, at)
    return [np.asarray(page.convert("RGB"))]
