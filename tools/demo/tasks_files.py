"""Writes the tasks files that the generator reads (docs/tasks.md) from tasks.py."""

import os
from pathlib import Path

import yaml

import teacher
from boxes import SCALE
from datasets import source
from tasks import ALL, FLOORS, SETS

PREPARE = "prepare: .venv/bin/python tools/demo/make.py datasets demo\n"
HEAD = "# Written by tools/demo/make.py datasets from tools/demo/tasks.py, which holds the floors too.\n# {}\n"


def entry(task, root, floor=None, head=False):
    out = {"name": task.name, "type": task.type, "train": source(task, root, "train"), "validation": source(task, root, "validation"),
           "metric": task.metric}
    if floor is not None:
        out["floor"] = floor
    if task.question:
        out["question"] = task.question
    if task.labels:
        out["labels"] = task.labels
    if head:
        out["head"] = task.name  # an adapter may have several heads
    if task.metric in ("f1", "box_accuracy"):
        out["boxes"] = {"scale": SCALE, "labels": task.box_labels}
    if task.max_answer_tokens:
        out["max_answer_tokens"] = task.max_answer_tokens
    return out


def taught(root):
    """The digits task twice, with the same pictures: once labelled by the teacher, once with the true
    labels."""
    digits = entry(ALL["digits"], root)
    same = {key: digits[key] for key in ("type", "validation", "metric", "question", "labels")} | {"head": "digits"}
    inputs = {"format": "folder", "path": f"{root}/digits-unlabelled"}
    pupil = {"kind": "torchscript", "inputs": inputs, "path": f"{root}/teacher/digits.pt", "output": "scores", "size": [teacher.SIDE, teacher.SIDE],
             "mean": [teacher.MEAN], "std": [teacher.DEVIATION], "channels": 1, "confidence": teacher.CONFIDENCE}
    return [{"name": "digits-taught", "teacher": pupil} | same, {"name": "digits-labelled", "train": f"{root}/digits-labelled.jsonl"} | same]


def flow(value):
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).removesuffix("...\n").strip()


def block(table, indent):
    for key, value in table.items():
        if key == "teacher":
            yield f"{indent}{key}:"
            yield from block(value, indent + "  ")
        else:
            yield f"{indent}{key}: {flow(value)}"


def write_file(path, what, tasks):
    texts = ["\n".join(block(task, "    ")) for task in tasks]
    path.write_text(HEAD.format(what) + PREPARE + "tasks:\n" + "\n\n".join("  - " + text.lstrip() for text in texts) + "\n")


def write(demo, root):
    """Paths are relative to the folder of the written files."""
    demo.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.relpath(root, demo)).as_posix()
    write_file(demo / "tasks.yaml", "What the demo's adapters must be able to do.",
               [entry(ALL[name], root, FLOORS[name], ALL[name].head) for name in SETS["demo"]])
    write_file(demo / "tasks-images.yaml", "Image classifications alone, all answered by the language model: tasks that fuse well (VaLoRA figures 5 and 10).",
               [entry(ALL[name], root) for name in SETS["images"]])
    write_file(demo / "tasks-videos.yaml", "Videos alone, all answered by the language model: tasks that fuse less well.",
               [entry(ALL[name], root) for name in SETS["videos"]])
    write_file(demo / "tasks-teacher.yaml", "What a small model knows, distilled without labels, beside the same pictures with labels.", taught(root))
