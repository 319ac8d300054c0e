"""Held-out accuracy of the base model's own skills, and of base model, adapter and head on each task, through
transformers and PEFT."""

import json
from collections import Counter

import numpy as np
from peft import PeftModel

import clips
import glyphs
import scenes
import talk
from ask import answers, classes
from judge import figures
from media import through_codec
from package import load
from places import head_of
from tasks import Drawn

HELD_OUT = 900001  # no other stage draws from this seed

# Skills of the base model: how to draw (None: text alone), questions, metric, and whether a constant answer is often
# right.
SKILLS = {
    "color of a shape": (scenes.scene, ("What color is the c", "What color is the s", "What color is the t", "What color is the d",
                                        "What color is the r", "What color is the h", "What is the color"), "exact", True),
    "shape of a color": (scenes.scene, ("What shape is", "Which shape is"), "exact", True),
    "count": (scenes.scene, ("How many", "Count"), "exact", True),
    "yes or no": (scenes.scene, ("Is there", "Do you see"), "exact", True),
    "left of, above": (scenes.scene, ("Is the",), "exact", True),
    "where": (scenes.scene, ("Where is", "In which part"), "exact", True),
    "box": (scenes.scene, ("Find the", "Give the box of"), "box_accuracy", False),
    "all boxes": (scenes.scene, ("Find all", "Give the boxes of"), "f1", False),
    "caption": (scenes.scene, ("Describe", "What is in", "What do you"), "cider", False),
    "read 1 or 2 characters": (glyphs.text, ("Read", "What does it say", "What text"), "exact", False),
    "motion in a clip": (clips.clip, ("What does the",), "exact", True),
    "caption of a clip": (clips.clip, ("What happens", "Describe the video"), "exact", False),
    "a question without a picture": (None, (), "exact", True),
}


def seeded(name):
    return np.random.default_rng([HELD_OUT, sum(map(ord, name))])


def skill_items(name, count):
    draw, starts, _, _ = SKILLS[name]
    rng, out = seeded(name), []
    if draw is None:
        return [Drawn([], answer, question) for question, answer in (talk.pair(rng) for _ in range(count))], False
    while len(out) < count:
        sample = draw(rng)
        fitting = [p for p in sample.pairs if p[0].startswith(starts)]
        if fitting:
            frames = through_codec(sample.frames) if sample.video else sample.frames
            question, answer = fitting[rng.integers(len(fitting))]
            out.append(Drawn(frames, answer, question))
    return out, draw is clips.clip


def task_items(task, count):
    """Held-out samples; clips pass through the codec, because a server reads encoded clips."""
    rng, out = seeded(task.name), []
    for _ in range(count):
        drawn = task.draw(rng, held_out=True)
        drawn.frames = through_codec(drawn.frames) if task.video else drawn.frames
        out.append(drawn)
    return out


def constant(name, items):
    """Accuracy of always giving the most frequent answer."""
    return round(Counter(i.answer for i in items).most_common(1)[0][1] / len(items), 3) if SKILLS[name][3] else None


def base_skills(folder, count):
    model, tokenizer, processor = load(folder)
    table = {}
    for name, (_, _, metric, _) in SKILLS.items():
        items, video = skill_items(name, count)
        got = answers(model, tokenizer, processor, [(i.frames, i.question) for i in items], video)
        table[name] = {"samples": count, **figures(metric, got, items), "chance": constant(name, items)}
        print(name, table[name], flush=True)
    return table


def one_task(task, place, folder, count):
    model, tokenizer, processor = load(folder)
    items = task_items(task, count)
    asked = [(i.frames, task.asked(i)) for i in items]
    before = answers(model, tokenizer, processor, asked, task.video)
    tuned = PeftModel.from_pretrained(model, place.folder).eval()
    after = answers(tuned, tokenizer, processor, asked, task.video)
    row = {"title": task.title, "modality": "video" if task.video else "image", "adapter_name": place.adapter,
           "rank": json.loads((place.folder / "adapter_config.json").read_text())["r"], "samples": count, "metric": task.metric,
           "chance": task.chance, "floor": place.floor, "validation": place.accuracy,
           "base": figures(task.metric, before, items), "adapter": figures(task.metric, after, items), "base_says": before[:3]}
    if place.head:
        labels, weight, bias = head_of(place)
        said = classes(tuned, weight, bias, tokenizer, processor, asked, task.video)
        row["head"] = {"labels": len(labels), **figures(task.metric, [labels[s] for s in said], items)}
    print(task.name, json.dumps(row), flush=True)
    return row
