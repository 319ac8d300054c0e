"""The demo's tasks: question, labels, metric, floor, and how to draw a sample. The base model's own skills are in
evaluate.py."""

from collections.abc import Callable
from dataclasses import dataclass, field

import boxes
import emblems
import films
import pictures
import scenes
from scenes import pick

# Accuracy floors on the validation data, in the task's metric (0 to 1).
FLOORS = {
    "digits": 0.88, "defects": 0.92, "mood": 0.88, "traffic": 0.88, "street": 0.80, "catalogue": 0.60,
    "cars": 0.70, "coins": 0.60, "actions": 0.92, "race": 0.75,
}


@dataclass
class Drawn:
    """One sample; boxes are (label, shares of width and height)."""
    frames: list
    answer: str                                  # expected from the language model
    question: str | None = None                  # overrides the task's question
    answers: list = field(default_factory=list)  # of ten people, for questions without a single true answer
    boxes: list = field(default_factory=list)


@dataclass
class Task:
    name: str
    title: str
    type: str                 # as in docs/tasks.md
    question: str | None
    draw: Callable            # rng, held_out -> Drawn
    metric: str = "exact"
    labels: list | None = None
    head: bool = False
    clip: str | None = None   # how a video is stored: "frames" (PNG files, the same ones each time) or "mp4"
    form: str = "jsonl"       # format of the data: also "folder", "coco"
    box_labels: bool = False  # write boxes with their labels
    max_answer_tokens: int | None = None
    answers: int | None = None  # number of different answers
    train: int = 1500         # samples
    validation: int = 200

    @property
    def video(self):
        return self.clip is not None

    @property
    def chance(self):
        """Accuracy of guessing among all answers; None for boxes."""
        choices = self.answers or (len(self.labels) if self.labels and self.metric == "top1" else None)
        return round(1 / choices, 3) if choices else None

    def asked(self, drawn):
        return drawn.question or self.question


def labelled(draw, labels):
    def sample(rng, held_out=False):
        label = pick(rng, labels)
        return Drawn(draw(rng, label), label)
    return sample


def draw_digit(rng, held_out=False):
    images, labels = pictures.digits()[held_out]
    at = int(rng.integers(len(images)))
    return Drawn(pictures.digit(rng, images[at], move=not held_out), str(labels[at]))


def shares(box):
    return tuple(v / pictures.SIZE for v in box)


def draw_car(rng, held_out=False):
    parked = pictures.car(rng)
    found = [("", shares(parked.box))]
    return Drawn(parked.frames, boxes.write(found, labels=False), boxes=found)


def draw_tray(rng, held_out=False):
    frames, things = emblems.tray(rng)
    found = [(label, shares(box)) for label, box in things]
    return Drawn(frames, boxes.write(found, labels=True), boxes=found)


def draw_catalogue(rng, held_out=False):
    """A scene with a caption in a house style: lot line in capitals, items from left to right,
    background last."""
    sample = scenes.scene(rng, most=2)
    things = sorted(sample.cells["things"][0], key=lambda t: t.centre[0])
    ground = next(a for q, a in sample.pairs if "background?" in q)
    items = "; ".join(f"{t.shape}, {t.colour}" for t in things)
    return Drawn(sample.frames, f"LOT OF {len(things)}: {items}. Shown on {ground}.")


# A plausible wrong answer for each right one.
NEAR = {"red": "orange", "orange": "red", "yellow": "orange", "green": "blue", "blue": "purple", "purple": "blue", "pink": "purple",
        "brown": "orange", "black": "gray", "white": "gray", "day": "evening", "night": "evening", "yes": "no", "no": "yes"}
PEOPLE = 10


def draw_street(rng, held_out=False):
    """A question about a street, and the answers of ten people, up to two of whom disagree."""
    parked = pictures.car(rng)
    pairs = [("What color is the car?", parked.colour)] * 2
    pairs.append(("Is it day or night?", "night" if parked.street.night else "day"))
    if not parked.hides_tree():
        pairs.append(("Is there a tree?", "yes" if parked.street.crown else "no"))
    question, answer = pick(rng, pairs)
    answers = [answer] * PEOPLE
    for at in rng.permutation(PEOPLE)[:rng.integers(0, 3)]:
        answers[at] = NEAR[answer]
    return Drawn(parked.frames, answer, question, answers)


DIGITS = [str(i) for i in range(10)]
LIGHTS = list(pictures.LIGHTS)
DEFECTS = ["clean", "scratch", "crack", "hole", "stain"]
MOODS = ["happy", "sad", "angry", "surprised"]
WEATHERS = ["sunny", "cloudy", "rainy", "snowy"]
FLAGS = list(emblems.FLAGS)
ACTIONS = ["walking", "jumping", "waving", "falling", "sitting"]
RACES = ["upper", "lower", "equal"]
LIGHT_EVENTS = ["dawn", "dusk", "flash", "flicker"]
BARRIERS = ["opening", "closing", "open", "closed"]

ALL = {t.name: t for t in [
    Task("digits", "Handwritten digit classification", "classification", "Which digit is written here?", draw_digit, "top1", DIGITS, head=True,
         form="folder", train=2500),
    Task("defects", "Surface defect classification", "classification", "What is wrong with the surface?", labelled(pictures.surface, DEFECTS),
         "top1", DEFECTS, head=True),
    Task("mood", "The mood of a face", "classification", "How does the person feel?", labelled(emblems.face, MOODS), "top1", MOODS, train=2000),
    Task("weather", "Weather classification", "classification", "How is the weather?", labelled(emblems.weather, WEATHERS), "top1", WEATHERS),
    Task("flags", "Flag classification", "classification", "Whose flag is this?", labelled(emblems.flag, FLAGS), "top1", FLAGS),
    Task("traffic", "Traffic light question answering", "question_answering", "What does the traffic light say?",
         labelled(pictures.traffic_light, LIGHTS), answers=len(LIGHTS)),
    Task("street", "Questions about a street, each answered by ten people", "question_answering", None, draw_street, "vqa", train=2000),
    Task("catalogue", "Captioning in an auction catalogue's style", "captioning", "Write the catalogue entry.", draw_catalogue, "cider", train=2500),
    Task("cars", "Car grounding", "grounding", "Find the car.", draw_car, "box_accuracy", train=2500),
    Task("coins", "Detection of coins and cards", "detection", "Find all coins and cards.", draw_tray, "f1", ["coin", "card"], form="coco",
         box_labels=True, max_answer_tokens=128, train=2500),
    Task("actions", "Human action in a clip", "video", "What is the person doing?", labelled(films.action, ACTIONS), "top1", ACTIONS, head=True,
         clip="frames", train=1200),
    Task("race", "Which of two moving things is faster in a clip", "video", "Which object is faster?", labelled(films.race, RACES), "top1", RACES,
         clip="frames", train=1200),
    Task("light", "What the light does in a clip", "video", "What does the light do?", labelled(films.light, LIGHT_EVENTS), "top1", LIGHT_EVENTS,
         clip="mp4", train=1000),
    Task("barrier", "What a barrier does in a clip", "video", "What does the barrier do?", labelled(films.barrier, BARRIERS), "top1", BARRIERS,
         clip="frames", train=1000),
]}

# The demo's adapters are trained on the first set, in this order; the others serve to plot accuracy over the number of fused tasks.
SETS = {
    "demo": list(FLOORS),
    "images": ["digits", "defects", "mood", "weather", "flags"],
    "videos": ["actions", "light", "barrier", "race"],
}
