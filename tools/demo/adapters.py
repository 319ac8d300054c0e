"""Makes the demo's adapters with valora's own generator."""

import json
import shutil
import subprocess

from places import places

# Enough for the small pictures. All tasks take 15 minutes on two idle cores, or 30 with --alone.
RECIPE = ["--steps", "400", "--batch", "24", "--learning-rate", "3e-3", "--rank", "16"]


def fuse(program, model, tasks, output, more):
    """Runs the generator with RECIPE, or with `more` instead. An interrupted run is resumed.

    `output` then holds the adapters, manifest.json, report.json and report.html.
    """
    root = model.parent.parent  # adapters refer to their base model by its path in the repository
    subprocess.run([program.resolve(), "fuse", "--model", model.relative_to(root), "--tasks", tasks.relative_to(root), "--output", output, *(more or RECIPE)],
                   check=True, cwd=root)


def install(output, demo):
    """Copies the generated adapters to demo/adapters, with their manifest."""
    made = places(output)
    shutil.rmtree(demo / "adapters", ignore_errors=True)
    for folder in {p.folder for p in made.values()}:
        shutil.copytree(folder, demo / "adapters" / folder.name)
    manifest = json.loads((output / "manifest.json").read_text())
    for name, entry in manifest["tasks"].items():
        entry["adapter"] = f"adapters/{made[name].adapter}"
    (demo / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def seconds(output):
    """Training time per task over all attempts."""
    out = {}
    for step in json.loads((output / "report.json").read_text())["steps"]:
        out[step["task"]] = round(out.get(step["task"], 0) + step["seconds"], 1)
    return out
