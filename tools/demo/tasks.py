"""The adapters' tasks: question, labels, rank, and how to draw and to judge a sample."""

import re
from dataclasses import dataclass
from typing import Callable

import films
import pictures
import scenes
from scenes import COLOURS, SHAPES, pick


@dataclass
class Task:
    name: str
    title: str
    question: str
    draw: Callable            # rng, held_out -> frames, answer
    labels: list | None = None
    head: bool = False
    rank: int = 16
    video: bool = False
    metric: str = "exact"
    samples: int = 2000       # drawn to train on
    steps: int = 300


def labelled(draw, labels):
    def sample(rng, held_out=False):
        label = pick(rng, labels)
        return draw(rng, label), label
    return sample


def draw_digit(rng, held_out=False):
    images, labels = pictures.digits()[held_out]
    at = int(rng.integers(len(images)))
    return pictures.digit(rng, images[at], move=not held_out), str(labels[at])


def draw_car(rng, held_out=False):
    frames, box = pictures.car(rng)
    return frames, scenes.percent(box, pictures.SIZE, pictures.SIZE)


def draw_catalogue(rng, held_out=False):
    """A scene with a caption in a house style: capital lot line, items from left to right, ground last."""
    sample = scenes.scene(rng)
    things = sorted(sample.cells["things"][0], key=lambda t: t.centre[0])
    ground = next(a for q, a in sample.pairs if "background?" in q)
    items = "; ".join(f"{t.shape}, {t.colour}" for t in things)
    return sample.frames, f"LOT OF {len(things)}: {items}. Shown on {ground}."


DIGITS = [str(i) for i in range(10)]
LIGHTS = list(pictures.LIGHTS)
DEFECTS = ["clean", "scratch", "crack", "hole", "stain"]
ACTIONS = ["walking", "jumping", "waving", "falling", "sitting"]
RACES = ["upper", "lower", "equal"]

TASKS = {t.name: t for t in [
    Task("digits", "Handwritten digit classification", "Which digit is written here?", draw_digit, DIGITS, head=True, rank=16, samples=3000, steps=450),
    Task("traffic", "Traffic light question answering", "What does the traffic light say?", labelled(pictures.traffic_light, LIGHTS), LIGHTS, rank=8),
    Task("cars", "Car grounding: the box in hundredths of width and height", "Find the car.", draw_car, rank=16, metric="box", samples=3000, steps=900),
    Task("catalogue", "Captioning in an auction catalogue's style", "Write the catalogue entry.", draw_catalogue, rank=16, metric="caption", samples=2500, steps=450),
    Task("defects", "Surface defect classification", "What is wrong with the surface?", labelled(pictures.surface, DEFECTS), DEFECTS, head=True, rank=8),
    Task("actions", "Human action in a clip", "What is the person doing?", labelled(films.action, ACTIONS), ACTIONS, head=True, rank=8, video=True, samples=1600, steps=450),
    Task("race", "Which of two moving things is faster in a clip", "Which object is faster?", labelled(films.race, RACES), RACES, rank=4, video=True, samples=1200),
]}


def box_of(text):
    found = re.search(r"\[(\d+),(\d+),(\d+),(\d+)\]", text)
    return tuple(map(int, found.groups())) if found else None


def overlap(a, b):
    """Intersection over union of two boxes; 0 where one could not be read."""
    if not a or not b:
        return 0.0
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    inner = max(0, w) * max(0, h)
    area = lambda r: max(0, r[2] - r[0]) * max(0, r[3] - r[1])
    return inner / max(1e-9, area(a) + area(b) - inner)


def things_in(text):
    """The (colour, shape) pairs that a caption names, in either order of the words."""
    colours, shapes = "|".join(COLOURS), "|".join(SHAPES)
    found = [(c, s) for c, s in re.findall(rf"\b({colours}) ({shapes})\b", text)]
    return found + [(c, s) for s, c in re.findall(rf"\b({shapes}), ({colours})\b", text)]


def named(answer, expected):
    """F1 of the named things."""
    got, want = things_in(answer.lower()), things_in(expected.lower())
    hits = sum(min(got.count(t), want.count(t)) for t in set(got))
    return 2 * hits / max(1, len(got) + len(want))


def judge(metric, answer, expected):
    """Figures of one answer; the first is the task's accuracy."""
    if metric == "box":
        iou = overlap(box_of(answer), box_of(expected))
        return {"iou_over_half": float(iou >= 0.5), "mean_iou": iou}
    if metric == "caption":
        return {"exact": float(answer.strip() == expected), "object_f1": named(answer, expected)}
    return {"exact": float(answer.strip() == expected)}
