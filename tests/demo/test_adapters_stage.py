"""`make.py adapters` with a stand-in for the generator, whose output becomes demo/adapters and demo/manifest.json."""

import json
import subprocess
import sys

import pytest

from programs import REPOSITORY

GENERATOR = """#!{python}
import json, pathlib, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
assert sys.argv[1] == "fuse" and pathlib.Path(given["--tasks"]).name == "tasks.yaml", sys.argv
out = pathlib.Path(given["--output"])
(out / "made" / "first").mkdir(parents=True)
(out / "made" / "first" / "adapter_config.json").write_text(given["--seed"])
place = {{"adapter": "made/first", "prompt": "?", "metric": "top1", "floor": 0.5, "accuracy": 0.75}}
(out / "manifest.json").write_text(json.dumps({{"tasks": {{"mood": place, "digits": place | {{"head": "digits"}}}}}}))
steps = [{{"task": "mood", "seconds": 2.0}}, {{"task": "digits", "seconds": 3.0}}, {{"task": "digits", "seconds": 4.0}}]
(out / "report.json").write_text(json.dumps({{"steps": steps}}))
"""


def stage(root, program):
    return subprocess.run([sys.executable, REPOSITORY / "tools/demo/make.py", "adapters", "--program", program, "--demo", root / "demo",
                           "--work", root / "work", "--", "--seed", "5"], capture_output=True, text=True, timeout=120)


@pytest.fixture
def root(tmp_path):
    old = tmp_path / "demo" / "adapters" / "old"
    old.mkdir(parents=True)
    return tmp_path


def test_new_adapters_replace_the_old_ones(root):
    program = root / "generator"
    program.write_text(GENERATOR.format(python=sys.executable))
    program.chmod(0o755)
    done = stage(root, program)
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in (root / "demo" / "adapters").iterdir()] == ["first"]
    assert (root / "demo" / "adapters" / "first" / "adapter_config.json").read_text() == "5"
    tasks = json.loads((root / "demo" / "manifest.json").read_text())["tasks"]
    assert {name: task["adapter"] for name, task in tasks.items()} == {"mood": "adapters/first", "digits": "adapters/first"}
    assert tasks["digits"]["head"] == "digits" and tasks["mood"]["accuracy"] == 0.75
    assert json.loads((root / "work" / "training.json").read_text())["adapters"] == {"mood": 2.0, "digits": 7.0}


def test_failed_generator_keeps_the_old_adapters(root):
    done = stage(root, "/bin/false")
    assert done.returncode != 0
    assert [folder.name for folder in (root / "demo" / "adapters").iterdir()] == ["old"]
