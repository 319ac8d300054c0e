"""Draws scenes of coloured shapes, with questions about them."""

import math
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw

import boxes

SHAPES = ["circle", "square", "triangle", "diamond", "star", "cross", "ring", "heart"]
COLOURS = {
    "red": (215, 40, 40), "orange": (245, 140, 30), "yellow": (245, 220, 50), "green": (45, 160, 70),
    "blue": (45, 90, 215), "purple": (140, 60, 180), "pink": (250, 150, 190), "brown": (125, 80, 45),
    "black": (20, 20, 22), "white": (248, 248, 248),
}
GROUNDS = {
    "white": (240, 240, 240), "black": (28, 28, 30), "gray": (140, 140, 142),
    "sky": (170, 205, 235), "sand": (222, 205, 165), "mint": (180, 225, 200),
}
CLASH = {"white": {"white"}, "black": {"black"}, "gray": set(), "sky": {"white"}, "sand": {"white", "yellow"}, "mint": {"white"}}
SHARES = {2: [0.5, 0.5], 3: [0.35, 0.4, 0.25]}  # of 1, 2 … objects, by the most that there may be
CELL = 16  # pixels covered by one language token of an image


@dataclass
class Thing:
    """One drawn object; the box is x0, y0, x1, y1 in pixels."""
    shape: str
    colour: str
    box: tuple
    motion: str | None = None

    @property
    def name(self):
        return f"{self.colour} {self.shape}"

    @property
    def centre(self):
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


@dataclass
class Sample:
    """Frames (one for an image), question/answer pairs, and the contents of each 16-pixel cell."""
    frames: list
    pairs: list
    video: bool = False
    cells: dict = field(default_factory=dict)


def pick(rng, items):
    return items[rng.integers(len(items))]


def jitter(rng, rgb, amount=14):
    return tuple(int(np.clip(c + rng.integers(-amount, amount + 1), 0, 255)) for c in rgb)


def _polygon(shape):
    if shape == "triangle":
        return [(0, -1), (1, 0.9), (-1, 0.9)]
    if shape == "diamond":
        return [(0, -1), (0.8, 0), (0, 1), (-0.8, 0)]
    if shape == "square":
        return [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]
    if shape == "star":
        return [((1 if i % 2 == 0 else 0.42) * math.sin(i * math.pi / 5),
                 -(1 if i % 2 == 0 else 0.42) * math.cos(i * math.pi / 5)) for i in range(10)]
    if shape == "cross":
        a = 0.34
        return [(-a, -1), (a, -1), (a, -a), (1, -a), (1, a), (a, a), (a, 1), (-a, 1), (-a, a), (-1, a), (-1, -a), (-a, -a)]
    ts = [i * 2 * math.pi / 24 for i in range(24)]
    return [(math.sin(t) ** 3, -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 16) for t in ts]


POLYGONS = {s: _polygon(s) for s in SHAPES if s not in ("circle", "ring")}


def draw_shape(draw, shape, box, fill, scale=2, angle=0.0):
    """Draws on a canvas that is `scale` times larger than the picture, for smooth edges."""
    x0, y0, x1, y1 = (v * scale for v in box)
    if shape == "circle":
        draw.ellipse((x0, y0, x1, y1), fill=fill)
    elif shape == "ring":
        draw.ellipse((x0, y0, x1, y1), outline=fill, width=max(2, int((x1 - x0) * 0.2)))
    else:
        cx, cy, rx, ry = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2
        c, s = math.cos(angle), math.sin(angle)
        draw.polygon([(cx + rx * (c * px - s * py), cy + ry * (s * px + c * py)) for px, py in POLYGONS[shape]], fill=fill)


def canvas(rgb, width, height, scale=2):
    image = Image.new("RGB", (width * scale, height * scale), rgb)
    return image, ImageDraw.Draw(image)


def finish(rng, image, scale=2, noise=5.0):
    """Scales the canvas down and adds a little sensor noise."""
    pixels = np.asarray(image.reduce(scale), dtype=np.float32)
    pixels = pixels + rng.normal(0, rng.uniform(0, noise), pixels.shape)
    return np.clip(pixels + 0.5, 0, 255).astype(np.uint8)


def place(rng, width, height, count, smallest=15, largest=30):
    """Boxes that do not overlap."""
    placed = []
    for _ in range(40):
        if len(placed) == count:
            break
        w = rng.uniform(smallest, largest)
        h = w * rng.uniform(0.85, 1.15)
        if w > width - 3 or h > height - 3:
            continue
        x, y = rng.uniform(1, width - w - 1), rng.uniform(1, height - h - 1)
        box = (x, y, x + w, y + h)
        if all(box[2] + 1 < b[0] or b[2] + 1 < box[0] or box[3] + 1 < b[1] or b[3] + 1 < box[1] for b in placed):
            placed.append(box)
    return placed


def percent(box, width, height):
    """A box as text: x0, y0, x1, y1 in hundredths of the picture's width and height."""
    return boxes.write([("", shares(box, width, height))], labels=False)


def shares(box, width, height):
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def found(things, width, height):
    """All boxes from left to right, grouped by shape."""
    ordered = sorted(things, key=lambda t: t.box)
    return boxes.write([(t.shape, shares(t.box, width, height)) for t in ordered], labels=True)


def where(thing, width, height):
    x, y = thing.centre
    column = ["left", "", "right"][min(2, int(3 * x / width))]
    row = ["top", "", "bottom"][min(2, int(3 * y / height))]
    return f"{row} {column}".strip() or "middle"


def join(names):
    names = [f"{'an' if n[0] in 'aeiou' else 'a'} {n}" for n in names]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def cell_labels(things, width, height):
    """The object that covers most of each cell, as index + 1; 0 if there is none."""
    owner = np.zeros((height // CELL, width // CELL), dtype=np.int64)
    best = np.full(owner.shape, 40.0)
    for index, thing in enumerate(things):
        x0, y0, x1, y1 = thing.box
        for row in range(owner.shape[0]):
            for col in range(owner.shape[1]):
                area = max(0, min(x1, (col + 1) * CELL) - max(x0, col * CELL)) * max(0, min(y1, (row + 1) * CELL) - max(y0, row * CELL))
                if area > best[row, col]:
                    owner[row, col], best[row, col] = index + 1, area
    return owner


def random_things(rng, width, height, count, ground):
    colours = [c for c in COLOURS if c not in CLASH[ground]]
    things = []
    for box in place(rng, width, height, count):
        for _ in range(20):
            thing = Thing(pick(rng, SHAPES), pick(rng, colours), box)
            if all(thing.name != t.name for t in things):
                break
        things.append(thing)
    return things


def all_boxes(rng, things, width, height):
    """A question for the boxes of all shapes, or of one or two kinds of shapes."""
    shapes = sorted({t.shape for t in things})
    if rng.random() < 0.5 and len(things) < 3:
        return pick(rng, ["Find all shapes.", "Give the boxes of all shapes."]), found(things, width, height)
    asked = [pick(rng, shapes)]
    other = pick(rng, SHAPES)
    if other not in asked and rng.random() < 0.6:
        asked.insert(int(rng.integers(2)), other)
    return f"Find all {' and '.join(plural(s) for s in asked)}.", found([t for t in things if t.shape in asked], width, height)


def plural(shape):
    return shape + ("es" if shape == "cross" else "s")


def questions(rng, things, ground, width, height):
    """Questions of all kinds, one or two of each."""
    ask = lambda *forms: forms[rng.integers(len(forms))]
    ordered = sorted(things, key=lambda t: t.centre[0])
    background = f"{ground} background"
    pairs = [
        (ask("How many objects are there?", "Count the objects.", "How many shapes do you see?"), str(len(things))),
        (ask("Describe the image.", "What is in the image?", "What do you see?"),
         f"{join([t.name for t in ordered])} on {join([background])}".capitalize() + "."),
        (ask("What is the background?", "What color is the background?"), ground),
    ]
    for thing in things:
        name = thing.name
        if sum(t.shape == thing.shape for t in things) == 1:
            pairs += [(ask(f"What color is the {thing.shape}?", f"What is the color of the {thing.shape}?"), thing.colour)] * 2
            pairs.append((ask(f"Where is the {thing.shape}?", f"In which part is the {thing.shape}?"), where(thing, width, height)))
            pairs.append((ask(f"Find the {thing.shape}.", f"Give the box of the {thing.shape}."), percent(thing.box, width, height)))
        if sum(t.colour == thing.colour for t in things) == 1:
            pairs.append((ask(f"What shape is {thing.colour}?", f"Which shape is {thing.colour}?"), thing.shape))
        pairs.append((ask(f"Is there {join([name])}?", f"Do you see {join([name])}?"), "yes"))
        other = f"{pick(rng, list(COLOURS))} {pick(rng, SHAPES)}"
        if rng.random() < 0.5:
            other = f"{thing.colour} {pick(rng, SHAPES)}" if rng.random() < 0.5 else f"{pick(rng, list(COLOURS))} {thing.shape}"
        pairs.append((ask(f"Is there {join([other])}?", f"Do you see {join([other])}?"), "yes" if any(t.name == other for t in things) else "no"))
        pairs.append((f"Where is the {name}?", where(thing, width, height)))
        pairs.append((ask(f"Find the {name}.", f"Give the box of the {name}."), percent(thing.box, width, height)))
    pairs.append(all_boxes(rng, things, width, height))
    if len(things) > 1:
        a, b = (things[i] for i in rng.permutation(len(things))[:2])
        pairs.append((f"Is the {a.name} left of the {b.name}?", "yes" if a.centre[0] < b.centre[0] else "no"))
        pairs.append((f"Is the {a.name} above the {b.name}?", "yes" if a.centre[1] < b.centre[1] else "no"))
        pairs.append(("Which object is the largest?", max(things, key=lambda t: (t.box[2] - t.box[0]) * (t.box[3] - t.box[1])).name))
    return pairs


def scene(rng, width=64, height=64, most=3):
    ground = pick(rng, list(GROUNDS))
    rgb = jitter(rng, GROUNDS[ground], 9)
    image, draw = canvas(rgb, width, height)
    if rng.random() < 0.3:  # texture, so that the tower sees more than flat colours
        for _ in range(rng.integers(3, 12)):
            x, y = rng.uniform(0, 2 * width), rng.uniform(0, 2 * height)
            dx, dy = rng.uniform(-30, 30, 2)
            draw.line((x, y, x + dx, y + dy), fill=jitter(rng, rgb, 22), width=int(rng.integers(1, 4)))
    things = random_things(rng, width, height, int(rng.choice([1, 2, 3][:most], p=SHARES[most])), ground)
    for thing in things:
        angle = rng.uniform(-0.25, 0.25)
        draw_shape(draw, thing.shape, thing.box, jitter(rng, COLOURS[thing.colour]), angle=angle)
    owner = cell_labels(things, width, height)
    return Sample([finish(rng, image)], questions(rng, things, ground, width, height), cells={"things": [things], "owner": owner[None]})
