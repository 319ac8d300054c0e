"""`make.py adapters` with a stand-in for the generator, whose output becomes demo/adapters and demo/manifest.json."""

import json
import subprocess
import sys

import pytest

from programs import REPOSITORY

GENERATOR = """#!{python}
import json, pathlib, sys
given = sys.argv[2:]
value = lambda option: given[given.index(option) + 1]
assert sys.argv[1] == "fuse" and pathlib.Path(value("--tasks")).name == "tasks.yaml", sys.argv
asked = given[given.index("--task") + 1:] if "--task" in given else ["mood", "digits"]
out = pathlib.Path(value("--output"))
(out / "made" / "first").mkdir(parents=True)
(out / "made" / "first" / "adapter_config.json").write_text(value("--seed") if "--seed" in given else " ".join(asked))
place = {{"adapter": "made/first", "prompt": "?", "metric": "top1", "floor": 0.5, "accuracy": 0.75}}
(out / "manifest.json").write_text(json.dumps({{"tasks": {{name: place | ({{"head": name}} if name == "digits" else {{}}) for name in asked}}}}))
steps = [{{"task": name, "seconds": 2.0 + i}} for i, name in enumerate(asked)] + [{{"task": asked[-1], "seconds": 4.0}}]
(out / "report.json").write_text(json.dumps({{"steps": steps}}))
"""


def stage(root, program, *more):
    return subprocess.run([sys.executable, REPOSITORY / "tools/demo/make.py", "adapters", "--program", program, "--demo", root / "demo",
                           "--work", root / "work", *more], capture_output=True, text=True, timeout=120)


def generator(root):
    program = root / "generator"
    program.write_text(GENERATOR.format(python=sys.executable))
    program.chmod(0o755)
    return program


@pytest.fixture
def root(tmp_path):
    old = tmp_path / "demo" / "adapters" / "old"
    old.mkdir(parents=True)
    return tmp_path


def test_new_adapters_replace_the_old_ones(root):
    done = stage(root, generator(root), "--", "--seed", "5")
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in (root / "demo" / "adapters").iterdir()] == ["adapter-1"]
    assert (root / "demo" / "adapters" / "adapter-1" / "adapter_config.json").read_text() == "5"
    tasks = json.loads((root / "demo" / "manifest.json").read_text())["tasks"]
    assert {name: task["adapter"] for name, task in tasks.items()} == {"mood": "adapters/adapter-1", "digits": "adapters/adapter-1"}
    assert tasks["digits"]["head"] == "digits" and tasks["mood"]["accuracy"] == 0.75
    assert json.loads((root / "work" / "training.json").read_text())["adapters"] == {"mood": 2.0, "digits": 7.0}


def test_tasks_with_boxes_are_trained_apart(root):
    done = stage(root, generator(root))
    assert done.returncode == 0, done.stderr
    folders = root / "demo" / "adapters"
    assert sorted(folder.name for folder in folders.iterdir()) == ["adapter-1", "adapter-2"]
    assert (folders / "adapter-2" / "adapter_config.json").read_text() == "cars coins"
    tasks = json.loads((root / "demo" / "manifest.json").read_text())["tasks"]
    assert len(tasks) == 10
    assert {name for name, task in tasks.items() if task["adapter"] == "adapters/adapter-2"} == {"cars", "coins"}
    assert json.loads((root / "work" / "training.json").read_text())["adapters"]["coins"] == 7.0


def test_failed_generator_keeps_the_old_adapters(root):
    done = stage(root, "/bin/false")
    assert done.returncode != 0
    assert [folder.name for folder in (root / "demo" / "adapters").iterdir()] == ["old"]
