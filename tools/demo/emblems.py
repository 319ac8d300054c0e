"""Draws the pictures of more image tasks: faces, weather, flags, and a tray of coins and cards."""

import math

from pictures import SIZE, S
from scenes import canvas, finish, jitter, pick, place

PAPERS = [(235, 235, 235), (170, 205, 235), (222, 205, 165), (180, 225, 200), (150, 150, 155)]


def face(rng, mood):
    image, draw = canvas(jitter(rng, pick(rng, PAPERS)), SIZE, SIZE)
    r = rng.uniform(46, 58)
    cx, cy = rng.uniform(r + 3, S - r - 3), rng.uniform(r + 3, S - r - 3)
    skin = jitter(rng, pick(rng, [(250, 215, 80), (240, 200, 165), (195, 145, 105), (150, 205, 120)]))
    ink, width = jitter(rng, (35, 30, 30)), int(r * 0.14)
    draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=skin, outline=ink, width=2)
    eye = r * rng.uniform(0.13, 0.17)
    for side in (-1, 1):
        x, y = cx + side * r * 0.38, cy - r * 0.2
        draw.ellipse((x - eye, y - eye, x + eye, y + eye), fill=ink)
        if mood == "angry":  # brows slope towards the nose
            draw.line((x + side * r * 0.24, y - r * 0.42, x - side * r * 0.22, y - r * 0.2), fill=ink, width=width)
    w, h = r * rng.uniform(0.42, 0.55), r * rng.uniform(0.3, 0.42)
    if mood == "happy":
        draw.arc((cx - w, cy + r * 0.35 - h, cx + w, cy + r * 0.35 + h), 10, 170, fill=ink, width=width)
    elif mood == "surprised":
        draw.ellipse((cx - w * 0.5, cy + r * 0.22, cx + w * 0.5, cy + r * 0.22 + 1.6 * h), fill=ink)
    else:
        draw.arc((cx - w, cy + r * 0.6 - h, cx + w, cy + r * 0.6 + h), 190, 350, fill=ink, width=width)
    return [finish(rng, image)]


def sun(rng, draw, cx, cy, r):
    fill = jitter(rng, (250, 205, 50))
    draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=fill)
    turn = rng.uniform(0, 1)
    for k in range(8):
        dx, dy = math.cos(turn + k * math.pi / 4), math.sin(turn + k * math.pi / 4)
        draw.line((cx + 1.25 * r * dx, cy + 1.25 * r * dy, cx + 1.7 * r * dx, cy + 1.7 * r * dy), fill=fill, width=4)


def cloud(rng, draw, cx, cy, r):
    fill = jitter(rng, (225, 228, 232), 8)
    for dx, dy, share in ((-0.9, 0.2, 0.65), (0, -0.2, 0.9), (0.9, 0.15, 0.7), (0.3, 0.3, 0.7)):
        x, y, size = cx + dx * r, cy + dy * r, share * r
        draw.ellipse((x - size, y - size, x + size, y + size), fill=fill)


def weather(rng, label):
    """All labels share the same skies, so the sky does not reveal the label."""
    image, draw = canvas(jitter(rng, pick(rng, [(120, 165, 215), (130, 145, 165), (90, 105, 150)])), SIZE, SIZE)
    draw.rectangle((0, S * rng.uniform(0.82, 0.92), S, S), fill=jitter(rng, pick(rng, [(110, 150, 90), (150, 130, 100)])))
    cx, cy, r = rng.uniform(40, S - 40), rng.uniform(34, 50), rng.uniform(16, 24)
    if label == "sunny":
        sun(rng, draw, cx, cy, r)
    else:
        cloud(rng, draw, cx, cy, r)
    if label in ("rainy", "snowy"):
        for _ in range(rng.integers(9, 16)):
            x, y = cx + rng.uniform(-1.6, 1.6) * r, cy + r * rng.uniform(1.0, 2.6)
            if label == "rainy":
                draw.line((x, y, x - 3, y + 10), fill=jitter(rng, (40, 70, 190)), width=3)
            else:
                draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=(250, 250, 250))
    return [finish(rng, image)]


RED, WHITE, BLUE, GREEN, BLACK, YELLOW = (210, 40, 45), (245, 245, 245), (35, 65, 165), (25, 140, 75), (25, 25, 25), (245, 205, 45)
# Vertical stripes, horizontal stripes, or a background with a disc or a cross.
FLAGS = {"france": ("across", BLUE, WHITE, RED), "italy": ("across", GREEN, WHITE, RED), "germany": ("down", BLACK, RED, YELLOW),
         "ukraine": ("down", BLUE, YELLOW), "japan": ("disc", WHITE, RED), "sweden": ("cross", BLUE, YELLOW)}


def flag(rng, country):
    image, draw = canvas(jitter(rng, pick(rng, PAPERS)), SIZE, SIZE)
    w = rng.uniform(56, 100)
    h = w * rng.uniform(0.6, 0.7)
    x, y = rng.uniform(6, S - w - 4), rng.uniform(4, S - h - 20)
    draw.rectangle((x - 4, y - 2, x, S), fill=(95, 65, 40))
    form, *colours = FLAGS[country]
    fills = [jitter(rng, c) for c in colours]
    if form == "across":
        for k, fill in enumerate(fills):
            draw.rectangle((x + w * k / 3, y, x + w * (k + 1) / 3, y + h), fill=fill)
    elif form == "down":
        for k, fill in enumerate(fills):
            draw.rectangle((x, y + h * k / len(fills), x + w, y + h * (k + 1) / len(fills)), fill=fill)
    else:
        draw.rectangle((x, y, x + w, y + h), fill=fills[0])
        if form == "disc":
            r, cx, cy = h * 0.3, x + w / 2, y + h / 2
            draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=fills[1])
        else:
            draw.rectangle((x + w * 0.3, y, x + w * 0.42, y + h), fill=fills[1])
            draw.rectangle((x, y + h * 0.42, x + w, y + h * 0.58), fill=fills[1])
    return [finish(rng, image)]


def tray(rng):
    """One or two coins and cards, from left to right; returns the frames and each item's (label, box in
    pixels)."""
    image, draw = canvas(jitter(rng, pick(rng, [(60, 75, 65), (75, 60, 55), (60, 65, 85)])), SIZE, SIZE)
    things = []
    for box in sorted(place(rng, SIZE, SIZE, int(rng.integers(1, 3)), smallest=22, largest=31)):
        label, canvas_box = pick(rng, ["coin", "card"]), tuple(2 * v for v in box)
        things.append((label, box))
        if label == "coin":
            draw.ellipse(canvas_box, fill=jitter(rng, pick(rng, [(225, 180, 70), (195, 200, 205)])), outline=(110, 90, 50), width=4)
        else:
            draw.rectangle(canvas_box, fill=jitter(rng, (240, 240, 235), 8), outline=jitter(rng, pick(rng, [RED, BLUE])), width=4)
    return [finish(rng, image)], things
