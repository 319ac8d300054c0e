"""Held-out accuracy of the base's own skills, and of base and adapter on each adapter's task."""

import json
from collections import Counter

import numpy as np
from peft import PeftModel
from safetensors.torch import load_file

import clips
import glyphs
import scenes
from ask import answers, classes
from media import through_codec
from package import load
from tasks import TASKS, judge

HELD_OUT = 900001  # no training stage draws from this seed

# Skill of the base: how to draw, which questions, metric, and whether a constant answer can be right often.
SKILLS = {
    "color of a shape": (scenes.scene, ("What color is the c", "What color is the s", "What color is the t", "What color is the d",
                                        "What color is the r", "What color is the h", "What is the color"), "exact", True),
    "shape of a color": (scenes.scene, ("What shape is", "Which shape is"), "exact", True),
    "count": (scenes.scene, ("How many", "Count"), "exact", True),
    "yes or no": (scenes.scene, ("Is there", "Do you see"), "exact", True),
    "left of, above": (scenes.scene, ("Is the",), "exact", True),
    "where": (scenes.scene, ("Where is", "In which part"), "exact", True),
    "box": (scenes.scene, ("Find", "Give"), "box", False),
    "caption": (scenes.scene, ("Describe", "What is in", "What do you"), "caption", False),
    "read 1 to 3 characters": (glyphs.text, ("Read", "What does it say", "What text"), "exact", False),
    "motion in a clip": (clips.clip, ("What does the",), "exact", True),
    "caption of a clip": (clips.clip, ("What happens", "Describe the video"), "exact", False),
}


def seeded(name):
    return np.random.default_rng([HELD_OUT, sum(map(ord, name))])


def skill_items(name, count):
    draw, starts, _, _ = SKILLS[name]
    rng, out = seeded(name), []
    while len(out) < count:
        sample = draw(rng)
        fitting = [p for p in sample.pairs if p[0].startswith(starts)]
        if fitting:
            frames = through_codec(sample.frames) if sample.video else sample.frames
            out.append((frames, *fitting[rng.integers(len(fitting))]))
    return out, draw is clips.clip


def task_items(task, count):
    """Held-out samples; a clip passes through the codec, since that is what a server reads."""
    rng, out = seeded(task.name), []
    for _ in range(count):
        frames, answer = task.draw(rng, held_out=True)
        out.append((through_codec(frames) if task.video else frames, task.question, answer))
    return out


def figures(metric, got, want):
    rows = [judge(metric, g, w) for g, w in zip(got, want)]
    return {key: round(float(np.mean([r[key] for r in rows])), 3) for key in rows[0]}


def constant(name, items):
    """Accuracy of always giving the most frequent answer."""
    return round(Counter(i[2] for i in items).most_common(1)[0][1] / len(items), 3) if SKILLS[name][3] else None


def base_skills(folder, count):
    model, tokenizer, processor = load(folder)
    table = {}
    for name, (_, _, metric, _) in SKILLS.items():
        items, video = skill_items(name, count)
        got = answers(model, tokenizer, processor, [i[:2] for i in items], video)
        table[name] = {"samples": count, **figures(metric, got, [i[2] for i in items]), "chance": constant(name, items)}
        print(name, table[name], flush=True)
    return table


def adapter_task(name, folder, adapters, count):
    task = TASKS[name]
    model, tokenizer, processor = load(folder)
    items = task_items(task, count)
    asked, want = [i[:2] for i in items], [i[2] for i in items]
    before = answers(model, tokenizer, processor, asked, task.video)
    tuned = PeftModel.from_pretrained(model, adapters / name).eval()
    after = answers(tuned, tokenizer, processor, asked, task.video)
    row = {"title": task.title, "modality": "video" if task.video else "image", "rank": task.rank, "samples": count, "metric": task.metric,
           "chance": round(1 / len(task.labels), 3) if task.labels else None,
           "base": figures(task.metric, before, want), "adapter": figures(task.metric, after, want), "base_says": before[:3]}
    if task.head:
        score = load_file(adapters / name / "adapter_model.safetensors")["base_model.model.score.weight"]
        said = classes(tuned, score, tokenizer, processor, asked, task.video)
        row["head"] = {"labels": len(task.labels), "exact": round(float(np.mean([task.labels[s] == w for s, w in zip(said, want)])), 3)}
    print(name, json.dumps(row), flush=True)
    return row
