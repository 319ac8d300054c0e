"""Draws short clips of one or two moving shapes, with questions about their motion."""

import numpy as np

from scenes import (
    CLASH,
    COLOURS,
    GROUNDS,
    SHAPES,
    Sample,
    Thing,
    canvas,
    cell_labels,
    draw_shape,
    finish,
    jitter,
    join,
    percent,
    pick,
)

MOTIONS = ["moves left", "moves right", "moves up", "moves down", "grows", "shrinks", "spins", "blinks", "stays still", "changes color", "bounces"]
DIRECTIONS = {"moves left": (-1, 0), "moves right": (1, 0), "moves up": (0, -1), "moves down": (0, 1)}


def path(rng, motion, count, width, height):
    """Centre, size, angle and visibility of the shape in each frame."""
    size = rng.uniform(14, 24)
    t = np.linspace(0, 1, count)
    half = size / 2 + 1
    x = np.full(count, rng.uniform(half, width - half))
    y = np.full(count, rng.uniform(half, height - half))
    sizes, angles, seen = np.full(count, size), np.zeros(count), np.ones(count, bool)
    if motion in DIRECTIONS:
        dx, dy = DIRECTIONS[motion]
        reach = rng.uniform(0.55, 1.0)
        for axis, d, span in ((x, dx, width), (y, dy, height)):
            if d:
                length = (span - 2 * half) * reach
                start = rng.uniform(half, span - half - length)
                axis[:] = start + length * (t if d > 0 else 1 - t)
    elif motion in ("grows", "shrinks"):
        sizes = rng.uniform(8, 12) + rng.uniform(16, 26) * (t if motion == "grows" else 1 - t)
        half = sizes.max() / 2 + 1
        x[:], y[:] = rng.uniform(half, width - half), rng.uniform(half, height - half)
    elif motion == "spins":
        angles = np.arange(count) * rng.uniform(0.35, 0.6) * rng.choice([-1, 1])
    elif motion == "blinks":
        seen = (np.arange(count) // 2 + rng.integers(2)) % 2 == 0
    elif motion == "bounces":
        floor, drop = height - half, rng.uniform(0.45, 0.9) * (height - 2 * half)
        y = floor - drop * np.abs(np.cos(np.pi * t * rng.uniform(1.6, 2.2)))
    return x, y, sizes, angles, seen


def clip(rng, frames=6, width=64, height=64):
    ground = pick(rng, list(GROUNDS))
    colours = [c for c in COLOURS if c not in CLASH[ground]]
    motion = pick(rng, MOTIONS)
    shapes = [s for s in SHAPES if s not in ("circle", "ring")] if motion == "spins" else SHAPES
    shape, colour = pick(rng, shapes), pick(rng, colours)
    second = pick(rng, [c for c in colours if c != colour])
    x, y, sizes, angles, seen = path(rng, motion, frames, width, height)
    rgb, fill, after = jitter(rng, GROUNDS[ground], 9), jitter(rng, COLOURS[colour]), jitter(rng, COLOURS[second])
    change = rng.integers(frames // 2 - 1, frames // 2 + 1) if motion == "changes color" else frames
    pictures, things = [], []
    for k in range(frames):
        image, draw = canvas(rgb, width, height)
        box = (x[k] - sizes[k] / 2, y[k] - sizes[k] / 2, x[k] + sizes[k] / 2, y[k] + sizes[k] / 2)
        if seen[k]:
            draw_shape(draw, shape, box, fill if k < change else after, angle=angles[k])
        pictures.append(finish(rng, image, noise=3.0))
        things.append([Thing(shape, colour if k < change else second, box, motion)])
    name = f"{colour} {shape}"
    sentence = f"{join([name])} {motion}".capitalize() + "."
    if motion == "changes color":
        sentence = f"{join([name])} changes color to {second}".capitalize() + "."
    pairs = [
        (pick(rng, ["What happens in the video?", "Describe the video."]), sentence),
        (pick(rng, ["What happens in the video?", "Describe the video."]), sentence),
        (pick(rng, [f"What does the {shape} do?", "What does the object do?"]), motion),
        (pick(rng, [f"What does the {shape} do?", "What does the object do?"]), motion),
        ("What shape is in the video?", shape),
        ("What is the background?", ground),
    ]
    if motion != "changes color":
        pairs.append((f"What color is the {shape}?", colour))
    else:
        pairs.append((f"What color is the {shape} at the end?", second))
    if motion in DIRECTIONS:
        pairs.append(("In which direction does it move?", motion.split()[1]))
        start = things[0][0]
        pairs.append((f"Where does the {shape} start?", percent(start.box, width, height)))
    # Two frames share one temporal patch: a cell's labels are those of the later frame.
    owner = np.stack([cell_labels(things[k], width, height) for k in range(1, frames, 2)])
    return Sample(pictures, pairs, video=True, cells={"things": [things[k] for k in range(1, frames, 2)], "owner": owner})
