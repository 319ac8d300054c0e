"""Draws short texts, with questions that ask to read them.

Fonts: DejaVu (Debian packages fonts-dejavu-core and fonts-dejavu-extra); Pillow's own font if they are missing.
"""

import functools

from PIL import Image, ImageFont

from scenes import CLASH, COLOURS, GROUNDS, Sample, Thing, canvas, cell_labels, finish, jitter, pick

CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FONTS = ["DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSansMono.ttf", "DejaVuSansCondensed.ttf"]


@functools.cache
def font(name, size):
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return ImageFont.load_default(size)


def draw_text(rng, draw, text, width, height, fill, scale=2, low=0.32, high=0.75):
    """Draws the text at a random position; returns one box in pixels per character."""
    face_name = pick(rng, FONTS)
    limit = min(height * high, width * 0.95 / (0.72 * len(text)))
    size = int(rng.uniform(min(limit, height * low), limit) * scale)
    face = font(face_name, size)
    left, top, right, bottom = draw.textbbox((0, 0), text, font=face)
    room_x, room_y = width * scale - (right - left) - 4, height * scale - (bottom - top) - 4
    x = 2 + rng.uniform(0, max(1, room_x)) - left
    y = 2 + rng.uniform(0, max(1, room_y)) - top
    draw.text((x, y), text, font=face, fill=fill)
    boxes, start = [], x
    for character in text:
        end = start + face.getlength(character)
        boxes.append((start / scale, (y + top) / scale, end / scale, (y + bottom) / scale))
        start = end
    return boxes


def coarse(image):
    """The picture as if scanned at an eighth of its resolution."""
    small = image.resize((image.width // 16, image.height // 16), Image.BOX)
    return small.resize(image.size, Image.BICUBIC)


def text(rng, width=64, height=64):
    ground = pick(rng, list(GROUNDS))
    colour = pick(rng, [c for c in COLOURS if c not in CLASH[ground]])
    count = int(rng.choice([1, 2], p=[0.6, 0.4]))
    string = "".join(pick(rng, CHARACTERS) for _ in range(count))
    scanned = count == 1 and rng.random() < 0.3
    if scanned:
        string = pick(rng, CHARACTERS[:10])
    image, draw = canvas(jitter(rng, GROUNDS[ground], 9), width, height)
    boxes = draw_text(rng, draw, string, width, height, jitter(rng, COLOURS[colour]), low=0.85 if scanned else 0.32, high=1.2 if scanned else 0.75)
    image = coarse(image) if scanned else image
    things = [Thing(c, colour, box) for c, box in zip(string, boxes)]
    pairs = [
        (pick(rng, ["Read the text.", "What does it say?", "What text is in the image?"]), string),
        ("Read the text.", string),
        ("What color is the text?", colour),
        (pick(rng, ["How many characters are there?", "Count the characters."]), str(count)),
        ("What is the background?", ground),
        (pick(rng, ["Describe the image.", "What is in the image?"]), f"The text {string} in {colour} on a {ground} background."),
    ]
    if count > 1:
        pairs.append(("What is the first character?", string[0]))
        pairs.append(("What is the last character?", string[-1]))
    return Sample([finish(rng, image)], pairs, cells={"things": [things], "owner": cell_labels(things, width, height)[None]})
