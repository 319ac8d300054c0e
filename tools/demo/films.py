"""Draws the clips of the video tasks: a figure in action, two things moving at different speeds, light in a room, a
barrier."""

import math

import numpy as np

from scenes import COLOURS, SHAPES, canvas, draw_shape, finish, jitter, pick

SIZE, FRAMES = 64, 6
S = 2 * SIZE
GROUNDS = [(235, 235, 235), (170, 205, 235), (222, 205, 165), (180, 225, 200), (150, 150, 155)]


def limb(draw, start, angle, length, ink, width):
    """A line from a joint; the angle is from straight down, positive to the right."""
    end = start[0] + length * math.sin(angle), start[1] + length * math.cos(angle)
    draw.line((*start, *end), fill=ink, width=width)
    return end


def figure(draw, hip, size, ink, lean, arms, legs, knees):
    """A stick figure, given by hip point, body lean, angles of both arms and thighs, and bend of both
    knees."""
    width = max(3, int(size * 0.09))
    neck = limb(draw, hip, math.pi - lean, size * 0.42, ink, width)
    head = neck[0] + size * 0.15 * math.sin(lean), neck[1] - size * 0.15 * math.cos(lean)
    r = size * 0.13
    draw.ellipse((head[0] - r, head[1] - r, head[0] + r, head[1] + r), fill=ink)
    for angle in arms:
        elbow = limb(draw, neck, angle - lean * 0.5, size * 0.2, ink, width)
        limb(draw, elbow, angle * 1.1, size * 0.2, ink, width)
    for thigh, bend in zip(legs, knees):
        knee = limb(draw, hip, thigh, size * 0.23, ink, width)
        limb(draw, knee, thigh - bend, size * 0.23, ink, width)


def action(rng, label):
    size = rng.uniform(52, 80)
    ground = S - rng.uniform(8, 22)
    rgb, floor = jitter(rng, pick(rng, GROUNDS)), jitter(rng, pick(rng, [(120, 105, 85), (95, 130, 85), (110, 110, 115)]))
    ink = jitter(rng, pick(rng, [(25, 25, 30), (150, 35, 35), (30, 60, 140), (90, 45, 110)]))
    x, side = rng.uniform(0.3, 0.7) * S, rng.choice([-1, 1])
    speed, phase = rng.uniform(0.16, 0.3) * size, rng.uniform(0, 2 * math.pi)
    pictures = []
    for k in range(FRAMES):
        t = k / (FRAMES - 1)
        cx, drop, lean, arms, legs, knees = x, 0.0, 0.0, (0.25, -0.25), (0.15, -0.15), (0, 0)
        if label == "walking":
            swing = 0.6 * math.sin(phase + k * 1.9)
            cx, arms, legs = x + side * (k - 2.5) * speed * 0.7, (swing, -swing), (swing, -swing)
        elif label == "jumping":
            lift = abs(math.sin(phase + k * 0.95))
            drop, arms, legs, knees = -lift * size * 0.45, (0.3 + lift * 2, -0.3 - lift * 2), (0.2 + 0.25 * lift, -0.2 - 0.25 * lift), (0.3 * lift, -0.3 * lift)
        elif label == "waving":
            raised = side * (2.5 + 0.5 * math.sin(phase + k * 2.1))
            arms = (raised, -side * 0.25)
        elif label == "falling":
            lean = side * min(1.5, 1.8 * t * t + 0.1)
            drop = size * 0.4 * min(1, 1.2 * t * t)
            legs = (0.15 - lean * 0.75, -0.15 - lean * 0.75)
            arms = (lean + 1.2, lean - 1.2)
        elif label == "sitting":
            down = min(1, 1.4 * t)
            drop, legs, knees = size * 0.24 * down, (side * (0.15 + 1.3 * down), side * (1.35 * down - 0.1)), (side * 1.4 * down, side * 1.4 * down)
        image, draw = canvas(rgb, SIZE, SIZE)
        draw.rectangle((0, ground, S, S), fill=floor)
        figure(draw, (cx, ground - size * 0.45 + drop), size, ink, lean, arms, legs, knees)
        pictures.append(finish(rng, image, noise=3.0))
    return pictures


def race(rng, label):
    """Two things move along an upper and a lower lane; one is clearly faster, or both are equal."""
    rgb = jitter(rng, pick(rng, GROUNDS))
    names = [c for c in COLOURS if c != "white"]
    first, second = (names[i] for i in rng.permutation(len(names))[:2])
    slow = rng.uniform(2.0, 3.6)
    fast = slow * rng.uniform(2.2, 2.8)
    speeds = {"upper": (fast, slow), "lower": (slow, fast), "equal": (slow * 1.5, slow * 1.5)}[label]
    lanes = []
    for lane, (speed, colour) in enumerate(zip(speeds, (first, second))):
        size, side = rng.uniform(12, 18), rng.choice([-1, 1])
        room = SIZE - size - 2 - speed * (FRAMES - 1)
        start = rng.uniform(0, max(0.1, room)) + size / 2 + 1
        xs = [start + speed * k if side > 0 else SIZE - start - speed * k for k in range(FRAMES)]
        lanes.append((pick(rng, SHAPES), jitter(rng, COLOURS[colour]), xs, SIZE * (0.27 + 0.46 * lane) + rng.uniform(-4, 4), size))
    pictures = []
    for k in range(FRAMES):
        image, draw = canvas(rgb, SIZE, SIZE)
        for shape, fill, xs, y, size in lanes:
            draw_shape(draw, shape, (xs[k] - size / 2, y - size / 2, xs[k] + size / 2, y + size / 2), fill)
        pictures.append(finish(rng, image, noise=3.0))
    return pictures


def room(rng):
    """A wall, a floor, a window and one or two objects, as a canvas to be lit."""
    image, draw = canvas(jitter(rng, pick(rng, [(225, 215, 195), (200, 215, 225), (215, 225, 205)])), SIZE, SIZE)
    floor = rng.uniform(0.65, 0.8) * S
    draw.rectangle((0, floor, S, S), fill=jitter(rng, (170, 135, 100)))
    x, w, h = rng.uniform(8, S - 50), rng.uniform(26, 42), rng.uniform(26, 42)
    draw.rectangle((x, 14, x + w, 14 + h), fill=jitter(rng, (190, 220, 240)), outline=(120, 90, 60), width=3)
    for _ in range(rng.integers(1, 3)):
        x, size = rng.uniform(4, SIZE - 24), rng.uniform(12, 20)
        draw_shape(draw, pick(rng, SHAPES), (x, floor / 2 - size + 4, x + size, floor / 2 + 4), jitter(rng, COLOURS[pick(rng, list(COLOURS))]))
    return image


def light(rng, label):
    """The light in a room turns on, turns off, flashes once, or flickers."""
    image = room(rng)
    low, high = rng.uniform(0.2, 0.35), rng.uniform(0.85, 1.0)
    t = np.linspace(0, 1, FRAMES)
    levels = np.full(FRAMES, low)
    if label == "flash":
        levels[rng.integers(1, FRAMES - 1)] = high
    elif label == "flicker":
        levels[rng.integers(2)::2] = high
    else:
        levels = low + (high - low) * (t if label == "dawn" else 1 - t)
    return [finish(rng, image.point(lambda v, level=level: v * level), noise=3.0) for level in levels]


def barrier(rng, label):
    """A barrier across a road that opens, closes, or stays up or down."""
    rgb, road = jitter(rng, pick(rng, GROUNDS)), jitter(rng, (105, 105, 110))
    ink = jitter(rng, pick(rng, [(215, 40, 40), (245, 140, 30), (30, 60, 140)]))
    ground, side = S - rng.uniform(16, 34), rng.choice([-1, 1])
    x, length, width = S / 2 - side * rng.uniform(30, 46), rng.uniform(60, 84), int(rng.integers(5, 9))
    down, up = math.pi / 2, math.pi / 2 + rng.uniform(1.0, 1.35)
    t = np.linspace(rng.uniform(0, 0.15), rng.uniform(0.85, 1), FRAMES)
    shares = {"opening": t, "closing": t[::-1], "open": np.ones(FRAMES), "closed": np.zeros(FRAMES)}[label]
    pictures = []
    for share in shares:
        image, draw = canvas(rgb, SIZE, SIZE)
        draw.rectangle((0, ground, S, S), fill=road)
        draw.rectangle((x - 6, ground - 34, x + 6, ground + 4), fill=(60, 60, 64))
        limb(draw, (x, ground - 28), side * (down + (up - down) * share), length, ink, width)
        pictures.append(finish(rng, image, noise=3.0))
    return pictures
