"""Makes the demo's adapters with valora's own generator."""

import json
import shutil
import subprocess
from dataclasses import dataclass

from places import places
from tasks import ALL, SETS

BOXES = ("grounding", "detection")  # types of tasks

SIZES = ["--batch", "24", "--learning-rate", "3e-3", "--rank", "16"]


@dataclass
class Run:
    """One run of the generator; its tasks share adapters."""
    name: str     # of its folder
    tasks: list   # empty: all of the file
    options: list


def runs(more):
    """Boxes need more steps than other answers, so their tasks are a run of their own. All take 15 minutes on two idle cores.
    more: options of a single run instead."""
    if more:
        return [Run("fused", [], more)]
    other = [name for name, task in ALL.items() if name in SETS["demo"] and task.type not in BOXES]
    found = [name for name in SETS["demo"] if name not in other]
    return [Run("fused", other, ["--steps", "400", *SIZES]), Run("fused-boxes", found, ["--steps", "1200", *SIZES])]


def fuse(program, model, tasks, output, run):
    """An interrupted run is resumed. `output` then holds the adapters, manifest.json, report.json and report.html."""
    root = model.parent.parent  # adapters refer to their base model by its path in the repository
    chosen = ["--task", *run.tasks] if run.tasks else []
    subprocess.run([program.resolve(), "fuse", "--model", model.relative_to(root), "--tasks", tasks.relative_to(root), "--output", output,
                    *run.options, *chosen], check=True, cwd=root)


def install(outputs, demo):
    """Copies the generated adapters to demo/adapters, numbered through, with one manifest."""
    tasks, number = {}, 0
    folders = demo / "adapters"
    shutil.rmtree(folders, ignore_errors=True)
    for output in outputs:
        made, names = places(output), {}
        for folder in sorted({place.folder for place in made.values()}):
            number += 1
            names[folder] = f"adapter-{number}"
            shutil.copytree(folder, folders / names[folder])
        entries = json.loads((output / "manifest.json").read_text())["tasks"]
        tasks |= {task: entry | {"adapter": f"adapters/{names[made[task].folder]}"} for task, entry in entries.items()}
    (demo / "manifest.json").write_text(json.dumps({"tasks": dict(sorted(tasks.items()))}, indent=2) + "\n")


def seconds(outputs):
    """Training time per task over all attempts."""
    out = {}
    for output in outputs:
        for step in json.loads((output / "report.json").read_text())["steps"]:
            out[step["task"]] = round(out.get(step["task"], 0) + step["seconds"], 1)
    return out
