"""Accuracy of activated adapters next to plain ones: each task alone, one adapter of each kind, the demo's settings.

    .venv/bin/python tools/bench/activated_tasks.py FOLDER [TASK…]

Tasks: five that the demo's adapters do not have (the default), any of the demo's, or `all`. Needs tools/requirements-demo.txt. A
run takes 40 seconds on two idle cores, and is kept in FOLDER: only missing ones are done."""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/demo"))

import adapters  # noqa: E402
import datasets  # noqa: E402
import emblems  # noqa: E402
import tasks  # noqa: E402
import tasks_files  # noqa: E402
from scenes import canvas, finish, jitter, pick  # noqa: E402

GAUGES = {"low": (-125, -55), "normal": (-35, 35), "high": (55, 125)}  # degrees of the needle, 0 is up
STEPS = {True: 1200, False: 400}  # of boxes, of other answers
KINDS = {"plain": [], "activated": ["--activated"]}


def gauge(rng, label):
    """A dial with ticks and a needle."""
    image, draw = canvas(jitter(rng, pick(rng, emblems.PAPERS)), emblems.SIZE, emblems.SIZE)
    r = rng.uniform(44, 58)
    cx, cy = rng.uniform(r + 3, emblems.S - r - 3), rng.uniform(r + 3, emblems.S - r - 3)
    draw.ellipse((cx - r, cy - r, cx + r, cy + r), fill=jitter(rng, (245, 245, 240)), outline=(60, 60, 60), width=3)

    def at(degrees, share):
        angle = math.radians(degrees)
        return cx + share * r * math.sin(angle), cy - share * r * math.cos(angle)

    for degrees in range(-135, 136, 45):
        draw.line((*at(degrees, 0.78), *at(degrees, 0.95)), fill=(60, 60, 60), width=3)
    draw.line((*at(0, 0), *at(rng.uniform(*GAUGES[label]), rng.uniform(0.6, 0.75))), fill=jitter(rng, (200, 45, 40)), width=6)
    return [finish(rng, image)]


ALL = tasks.ALL | {"gauge": tasks.Task("gauge", "A gauge's reading", "classification", "What does the gauge show?",
                                       tasks.labelled(gauge, list(GAUGES)), "top1", list(GAUGES))}
NEW = ["weather", "flags", "gauge", "light", "barrier"]


def accuracy(program, folder, task, kind):
    """On the validation data. Trains and validates, unless that was done."""
    output = folder / f"{task.name}-{kind}"
    if not (output / "report.json").exists():
        data = folder / "tasks"
        if not (data / task.name).exists():
            datasets.write(task, data)
        described = folder / f"{task.name}.yaml"
        described.write_text(yaml.safe_dump({"tasks": [tasks_files.entry(task, data)]}, sort_keys=False))
        steps = STEPS[task.type in adapters.BOXES]
        subprocess.run([program, "fuse", "--model", ROOT / "demo/model", "--tasks", described, "--output", output, "--steps", str(steps),
                        *adapters.SIZES, *KINDS[kind]], check=True, stdout=subprocess.DEVNULL)
    [step] = json.loads((output / "report.json").read_text())["steps"]
    assert step["activated"] == (kind == "activated"), step
    return step["accuracies"][task.name]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("tasks", nargs="*", default=NEW)
    parser.add_argument("--program", default=ROOT / "build/valora")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = list(ALL) if arguments.tasks == ["all"] else arguments.tasks
    for name in names:
        shown = [f"{kind} {100 * accuracy(arguments.program, folder, ALL[name], kind):5.1f} %" for kind in KINDS]
        print(f"{name:10} {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
