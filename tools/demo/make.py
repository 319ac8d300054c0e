"""Makes demo/: the base model, its adapters, the samples and the measured accuracy.

    python tools/demo/make.py base --minutes 45     trains from scratch, or goes on from a checkpoint in --work
    python tools/demo/make.py package               writes the checkpoint as demo/model
    python tools/demo/make.py adapters [NAME...]    trains the adapters
    python tools/demo/make.py samples               writes demo/samples
    python tools/demo/make.py evaluate [NAME...]    measures on held-out samples: demo/accuracy.json
    python tools/demo/make.py readme                writes demo/README.md from the measured figures
    python tools/demo/make.py check                 loads everything as a user would, and asks every sample
    python tools/demo/make.py all
"""

import argparse
import json
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
    note(options.work / "training.json", "base", value=base.train(options.minutes, options.work))


def make_package(options):
    import package
    package.write(options.work / "base.pt", options.work, options.demo / "model")


def make_adapters(options):
    import adapters
    from tasks import TASKS
    for name in options.names or TASKS:
        seconds = adapters.train(TASKS[name], options.demo / "model", options.demo / "adapters" / name)
        note(options.work / "training.json", "adapters", name, value=seconds)
        print(f"{name}: {seconds} s", flush=True)


def make_samples(options):
    import samples
    samples.write(options.demo)


def make_accuracy(options):
    import evaluate
    from tasks import TASKS
    target = options.demo / "accuracy.json"
    times = json.loads((options.work / "training.json").read_text()) if (options.work / "training.json").exists() else {}
    note(target, "command", value="python tools/demo/make.py evaluate")
    note(target, "what", value="Greedy answers of transformers' generate in fp32 over the bf16 weights, on held-out samples; clips pass through H.264.")
    if not options.names or "base" in options.names:
        note(target, "base", "training", value=times.get("base"))
        note(target, "base", "skills", value=evaluate.base_skills(options.demo / "model", options.count))
    for name in options.names or TASKS:
        if name in TASKS:
            row = evaluate.adapter_task(name, options.demo / "model", options.demo / "adapters", options.count)
            note(target, "adapters", name, value={**row, "training_seconds": times.get("adapters", {}).get(name)})


def make_readme(options):
    import report
    report.write(options.demo)


def make_check(options):
    import check
    check.run(options.demo)


def main():
    stages = {"base": make_base, "package": make_package, "adapters": make_adapters, "samples": make_samples, "evaluate": make_accuracy,
              "readme": make_readme, "check": make_check}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=[*stages, "all"])
    parser.add_argument("names", nargs="*", help="adapters; for evaluate also 'base'")
    parser.add_argument("--demo", type=Path, default=ROOT / "demo")
    parser.add_argument("--work", type=Path, default=ROOT / "build-demo", help="folder of the checkpoint")
    parser.add_argument("--minutes", type=float, default=45, help="wall-clock budget of the base training")
    parser.add_argument("--count", type=int, default=300, help="held-out samples of each measurement")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    for name, stage in stages.items():
        if options.stage in (name, "all"):
            stage(options)


if __name__ == "__main__":
    main()
