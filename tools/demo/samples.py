"""Writes held-out samples for the demo: the first ones drawn from a separate seed, none picked
by hand."""

import json

import numpy as np

import clips
import glyphs
import media
import scenes
from places import places
from tasks import ALL

SEED = 700001
EACH = 3


def entry(name, number, path, video, question, expected, task=None, place=None, head=None):
    """place: None for the base model."""
    return {"id": f"{name}-{number}" + ("" if place else "-base") + ("-head" if head else ""), "task": task,
            "adapter": place.adapter if place else None, "kind": "classify" if head else "generate", "head": head,
            "media": path, "modality": "video" if video else "image", "question": question, "expected": expected}


def of_task(task, place, demo):
    rng = np.random.default_rng([SEED, sum(map(ord, task.name))])
    for number in range(1, EACH + 1):
        drawn = task.draw(rng, held_out=True)
        path = f"samples/{task.name}-{number}." + ("mp4" if task.video else "png")
        media.write(drawn.frames, demo / path)
        same = task.name, number, path, task.video, task.asked(drawn), drawn.answer, task.name
        yield entry(*same, place)
        if place.head:
            yield entry(*same, place, place.head)
        if number == 1:  # the same picture and question for the base model, for comparison
            yield entry(*same)


def write(demo):
    folder, entries = demo / "samples", []
    for old in folder.glob("*") if folder.exists() else []:
        old.unlink()
    for name, place in places(demo).items():
        entries += of_task(ALL[name], place, demo)
    rng = np.random.default_rng(SEED)
    for name, draw, wanted in (("scene", scenes.scene, ("Describe", "What is in", "What do you")), ("scene", scenes.scene, ("Find",)),
                               ("scene", scenes.scene, ("How many", "Count")), ("text", glyphs.text, ("Read",)), ("clip", clips.clip, ("What does the",))):
        sample = draw(rng)
        question, answer = next(p for p in sample.pairs if p[0].startswith(wanted))
        number = 1 + sum(e["id"].startswith(f"{name}-") for e in entries)
        path = f"samples/{name}-{number}." + ("mp4" if sample.video else "png")
        media.write(sample.frames, demo / path)
        entries.append(entry(name, number, path, sample.video, question, answer))
    (demo / "samples.json").write_text(json.dumps(entries, indent=2) + "\n")
    return entries
