"""`valora fuse` on a tiny random checkpoint: tasks about drawn single-colour pictures, and the output of a
run."""

import json
import subprocess

import numpy as np
from PIL import Image

from programs import find_program

COLOURS = {"red": (230, 30, 30), "green": (30, 200, 40), "blue": (40, 40, 230)}
MODEL = "vl-grouped-tied"
OPTIONS = {"steps": 12, "batch": 6, "learning-rate": 0.01, "rank": 4, "threads": 1, "dtype": "float32", "checkpoint-every": 2}


def draw(folder, name, colour, rng):
    pixels = np.clip(np.array(COLOURS[colour]) + rng.normal(0, 20, (56, 56, 3)), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(folder / name)


def write_task(root, name, count=24, seed=0, answer=lambda colour: colour):
    """Single-colour pictures with a question. Answers are the colour names, mapped by `answer`."""
    lines = {"train": [], "validation": []}
    rng = np.random.default_rng(seed)
    for part, amount in (("train", count), ("validation", 9)):
        for i in range(amount):
            colour = list(COLOURS)[i % 3]
            picture = f"{name}-{part}-{i}.png"
            draw(root, picture, colour, rng)
            lines[part].append(json.dumps({"image": picture, "label": answer(colour)}))
        (root / f"{name}-{part}.jsonl").write_text("\n".join(lines[part]) + "\n")
    return {"name": name, "type": "classification", "train": f"{name}-train.jsonl", "validation": f"{name}-validation.jsonl",
            "metric": "top1", "question": f"Which colour is it ({name})?"}


def write_tasks(root, tasks):
    (root / "tasks.json").write_text(json.dumps({"tasks": tasks}, indent=1))
    return root / "tasks.json"


def command(model, tasks, output, *flags, log_level="error", **options):
    options = OPTIONS | {name.replace("_", "-"): value for name, value in options.items()}
    return [find_program("valora"), "--log-level", log_level, "fuse", "--model", str(model), "--tasks", str(tasks), "--output", str(output),
            *flags, *(f"--{name}={value}" for name, value in options.items())]


def fuse(model, tasks, output, *flags, status=0, preexec=None, **options):
    """Runs `valora fuse` once; it must end with this exit status (None: any)."""
    done = subprocess.run(command(model, tasks, output, *flags, **options), capture_output=True, text=True, timeout=300, preexec_fn=preexec)
    assert status is None or done.returncode == status, done.stderr
    return done


def report_of(output):
    return json.loads((output / "report.json").read_text())


def manifest_of(output):
    return json.loads((output / "manifest.json").read_text())["tasks"]


def bytes_of(output):
    return {p.relative_to(output): p.read_bytes() for p in sorted((output / "adapters").rglob("*")) if p.is_file()}


def strip_times(report):
    for step in report["steps"]:
        step["seconds"] = step["evaluation_seconds"] = 0
    return report | {"seconds": 0, "peak_bytes": 0}
