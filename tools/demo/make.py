"""Makes demo/: the base model, its adapters, the samples and the measured accuracy.

    python tools/demo/make.py base --steps 3800     trains from scratch, or continues from a checkpoint in --work
    python tools/demo/make.py package               writes the checkpoint as demo/model
    python tools/demo/make.py datasets [NAME...]    draws data into --work/tasks, for tasks or the sets demo, images, videos, teacher;
                                                    writes demo/tasks*.yaml
    python tools/demo/make.py adapters [-- OPTION…] makes the adapters with `valora fuse`, and demo/manifest.json
    python tools/demo/make.py samples               writes demo/samples
    python tools/demo/make.py evaluate [NAME...]    measures on held-out samples: demo/accuracy.json
    python tools/demo/make.py readme                writes demo/README.md from the measured figures
    python tools/demo/make.py check                 loads everything as a user would, and runs every sample
    python tools/demo/make.py all
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def note(path, *keys, value):
    """Sets one entry of a JSON file."""
    table = json.loads(path.read_text()) if path.exists() else {}
    at = table
    for key in keys[:-1]:
        at = at.setdefault(key, {})
    at[keys[-1]] = value
    path.write_text(json.dumps(table, indent=2) + "\n")


def make_base(options):
    import base
    begun = {"start": str(options.start)} if options.start else {}
    note(options.work / "training.json", "base", value=base.train(options.steps, options.work, options.start) | begun)


def make_package(options):
    import package
    package.write(options.work / "base.pt", options.work, options.demo / "model")


def make_datasets(options):
    import datasets
    import tasks_files
    import teacher
    from tasks import ALL, SETS
    root = options.work / "tasks"
    names = options.names or [*ALL, "teacher"]
    for name in dict.fromkeys(task for given in names for task in SETS.get(given, [given])):
        if name == "teacher":
            teacher.write_pictures(root, options.limit)
            share = teacher.train(root / "teacher" / "digits.pt")
            print(f"the digits' teacher is right on {100 * share:.1f} % of what it will label", flush=True)
        else:
            datasets.write(ALL[name], root, options.limit)
            print(f"{name}: drawn", flush=True)
    tasks_files.write(options.demo, root)


def make_adapters(options):
    import adapters
    runs = adapters.runs(options.fuse)
    for run in runs:
        adapters.fuse(options.program, options.demo / "model", options.demo / "tasks.yaml", options.work / run.name, run)
    outputs = [options.work / run.name for run in runs]
    adapters.install(outputs, options.demo)
    note(options.work / "training.json", "adapters", value=adapters.seconds(outputs))


def make_samples(options):
    import samples
    samples.write(options.demo)


def make_accuracy(options):
    import evaluate
    from places import places
    from tasks import ALL
    target = options.demo / "accuracy.json"
    times = json.loads((options.work / "training.json").read_text()) if (options.work / "training.json").exists() else {}
    note(target, "command", value="python tools/demo/make.py evaluate")
    note(target, "what", value="Greedy answers of transformers' generate in fp32 over the bf16 weights, on held-out samples; clips pass through H.264.")
    if not options.names or "base" in options.names:
        note(target, "base", "skills", value=evaluate.base_skills(options.demo / "model", options.count))
        if "base" in times:
            note(target, "base", "training", value=times["base"])
    made = places(options.demo)
    if not options.names:
        note(target, "tasks", value={})
    for name in options.names or made:
        if name in made:
            row = evaluate.one_task(ALL[name], made[name], options.demo / "model", options.count)
            note(target, "tasks", name, value={**row, "training_seconds": times.get("adapters", {}).get(name)})


def make_readme(options):
    import report
    report.write(options.demo)


def make_check(options):
    import check
    check.run(options.demo)


STAGES = {"base": make_base, "package": make_package, "datasets": make_datasets, "adapters": make_adapters, "samples": make_samples,
          "evaluate": make_accuracy, "readme": make_readme, "check": make_check}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=[*STAGES, "all"])
    parser.add_argument("names", nargs="*", help="tasks; for evaluate also 'base'")
    parser.add_argument("--demo", type=Path, default=ROOT / "demo")
    parser.add_argument("--work", type=Path, default=ROOT / "build-demo", help="folder of the checkpoint, the data and the generator's output")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "valora")
    parser.add_argument("--steps", type=int, default=3800, help="of the base training")
    parser.add_argument("--start", type=Path, help="a packaged model that the base training begins with")
    parser.add_argument("--count", type=int, default=300, help="held-out samples per measurement")
    parser.add_argument("--limit", type=int, help="highest number of samples per split")
    own, more = sys.argv[1:], []
    if "--" in own:
        own, more = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    options.fuse = more
    options.work.mkdir(parents=True, exist_ok=True)
    for name, stage in STAGES.items():
        if options.stage in (name, "all"):
            stage(options)


if __name__ == "__main__":
    main()
