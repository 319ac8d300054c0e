"""Writes held-out samples for the demo: the first ones of their own seed, none picked by hand."""

import json

import numpy as np

import clips
import glyphs
import media
import scenes
from tasks import TASKS

SEED = 700001
EACH = 3


def entry(name, number, adapter, kind, path, video, question, expected):
    return {"id": f"{name}-{number}" + ("" if adapter else "-base") + ("-head" if kind == "classify" else ""), "adapter": adapter, "kind": kind,
            "media": path, "modality": "video" if video else "image", "question": question, "expected": expected}


def write(demo):
    folder, entries = demo / "samples", []
    for old in folder.glob("*") if folder.exists() else []:
        old.unlink()
    for task in TASKS.values():
        rng = np.random.default_rng([SEED, sum(map(ord, task.name))])
        for number in range(1, EACH + 1):
            frames, answer = task.draw(rng, held_out=True)
            path = f"samples/{task.name}-{number}." + ("mp4" if task.video else "png")
            media.write(frames, demo / path)
            entries.append(entry(task.name, number, task.name, "generate", path, task.video, task.question, answer))
            if task.head:
                entries.append(entry(task.name, number, task.name, "classify", path, task.video, task.question, answer))
            if number == 1:  # the same picture and question for the base, to compare
                entries.append(entry(task.name, number, None, "generate", path, task.video, task.question, answer))
    rng = np.random.default_rng(SEED)
    for name, draw, wanted in (("scene", scenes.scene, ("Describe", "What is in", "What do you")), ("scene", scenes.scene, ("Find",)),
                               ("scene", scenes.scene, ("How many", "Count")), ("text", glyphs.text, ("Read",)), ("clip", clips.clip, ("What does the",))):
        sample = draw(rng)
        question, answer = next(p for p in sample.pairs if p[0].startswith(wanted))
        number = 1 + sum(e["id"].startswith(f"{name}-") for e in entries)
        path = f"samples/{name}-{number}." + ("mp4" if sample.video else "png")
        media.write(sample.frames, demo / path)
        entries.append(entry(name, number, None, "generate", path, sample.video, question, answer))
    (demo / "samples.json").write_text(json.dumps(entries, indent=2) + "\n")
    return entries
