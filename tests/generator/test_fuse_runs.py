"""How runs of `valora fuse` start, stop, resume and end: exit status, checkpoints, and when what is replaced."""

import json
import os
import signal
import subprocess
import time

import pytest

import checkpoints
from fusing import (
    MODEL,
    bytes_of,
    command,
    draw,
    fuse,
    manifest_of,
    report_of,
    strip_times,
    write_task,
    write_tasks,
)
from programs import find_program


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoints.save_model(checkpoints.make_model(MODEL), tmp_path_factory.mktemp("model") / MODEL)


@pytest.fixture
def two(tmp_path):
    """A tasks file with two tasks without floors."""
    return write_tasks(tmp_path, [write_task(tmp_path, "first", 6, seed=1), write_task(tmp_path, "second", 6, seed=2)])


@pytest.mark.parametrize("rate", ["0", "-0.001", "nan", "inf", "7"])
def test_learning_rate_out_of_range_is_refused_before_the_run(two, tmp_path, rate):
    """The rate is refused before the model is loaded: there is none."""
    done = fuse(tmp_path / "no-model", two, tmp_path / "out", status=1, learning_rate=rate)
    assert "--learning-rate takes a number above 0 and at most 0.5" in done.stderr and "begin with 2e-4" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option, value", [("warmup", "nan"), ("weight-decay", "-1"), ("clip", "nan"), ("alpha-per-rank", "0"), ("patience", "0"),
                                           ("replay", "nan"), ("tokens-per-pass", "0")])
def test_numbers_out_of_range_are_refused_before_the_run(two, tmp_path, option, value):
    done = fuse(tmp_path / "no-model", two, tmp_path / "out", status=1, **{option: value})
    assert f"--{option}" in done.stderr


def test_duplicate_head_names_are_refused_before_the_run(tmp_path):
    tasks = write_tasks(tmp_path, [write_task(tmp_path, name, 6) | {"head": "colour"} for name in ("first", "second")])
    done = fuse(tmp_path / "no-model", tasks, tmp_path / "out", status=1)
    assert "the heads of first and second are both named colour; give them different names" in done.stderr


def test_dropping_other_tasks_of_the_folder_requires_replace(model, two, tmp_path):
    output = tmp_path / "out"
    fuse(model, two, output, steps=2)
    before = bytes_of(output)
    done = fuse(model, two, output, "--task", "second", status=1, steps=2)
    assert "has tasks that this run leaves out (first)" in done.stderr and "--replace" in done.stderr
    assert fuse(model, two, output, "--task", "second", "--restart", status=1, steps=2).returncode == 1
    assert bytes_of(output) == before and set(manifest_of(output)) == {"first", "second"}
    assert any((output / "attempts").iterdir()), "a refused run takes nothing away"
    fuse(model, two, output, "--task", "second", "--replace", steps=2)
    assert set(manifest_of(output)) == {"second"}
    fuse(model, two, output, "--task", "second", "first", steps=2)  # adding tasks loses nothing
    assert set(manifest_of(output)) == {"first", "second"}


def test_adapters_and_manifest_change_atomically(model, two, tmp_path):
    """A run that fails when it renames the manifest must leave the old manifest with its
    adapters."""
    output = tmp_path / "out"
    fuse(model, two, output, "--task", "first", steps=2)
    manifest, before = (output / "manifest.json").read_bytes(), bytes_of(output)
    (output / "manifest.json.part").mkdir()  # prevents writing the new manifest
    done = fuse(model, two, output, status=1, steps=2)
    assert "manifest.json" in done.stderr
    assert (output / "manifest.json").read_bytes() == manifest
    after = bytes_of(output)
    assert {path: after.get(path) for path in before} == before
    (output / "manifest.json.part").rmdir()
    fuse(model, two, output, steps=2)
    entries = manifest_of(output)
    assert {entry["adapter"] for entry in entries.values()} == {"adapters/adapter-1-r2"}
    assert [p.name for p in (output / "adapters").iterdir()] == ["adapter-1-r2"], "the old one is gone after the change"
    again = bytes_of(output)
    fuse(model, two, output, steps=2)
    assert bytes_of(output) == again, "equal adapters stay where they are"
    fuse(model, two, output, "--task", "first", "--replace", steps=2)
    assert [p.name for p in (output / "adapters").iterdir()] == ["adapter-1"]


def stop_when(process, condition, sent):
    for _ in range(1200):
        if condition() or process.poll() is not None:
            break
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    process.send_signal(sent)
    _, error = process.communicate(timeout=60)
    return process.returncode, error


@pytest.mark.parametrize("sent, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_saves_a_checkpoint(model, tmp_path, sent, status):
    """Even without regular checkpoints; the run resumes from there with the same result, and adds up the times of
    both parts."""
    tasks = write_tasks(tmp_path, [write_task(tmp_path, "first", seed=6)])
    output, options = tmp_path / "out", dict(steps=40, checkpoint_every=0, evaluate_every=7, patience=50)
    fuse(model, tasks, tmp_path / "evaluated", **options)
    process = subprocess.Popen(command(model, tasks, output, **options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    attempts = output / "attempts"
    # The folder of the first evaluation during training.
    ended, error = stop_when(process, lambda: attempts.exists() and any(p.is_dir() and p.suffix == "" for p in attempts.iterdir()), sent)
    assert ended == status and "stopped by a signal; the same command continues" in error
    checkpoint, = attempts.glob("*.checkpoint")
    assert not (output / "manifest.json").exists()
    notes = json.loads(notes_of(checkpoint))
    assert 7 <= notes["step"] < 40 and notes["seconds"] > 0
    fuse(model, tasks, output, **options)
    assert not checkpoint.exists()
    assert bytes_of(output) == bytes_of(tmp_path / "evaluated")
    assert strip_times(report_of(output)) == strip_times(report_of(tmp_path / "evaluated"))
    step, = report_of(output)["steps"]
    assert step["seconds"] > notes["seconds"] and step["steps"] == 40


def notes_of(checkpoint):
    from safetensors.torch import load_file
    return bytes(load_file(checkpoint)["state"].tolist()).decode()


def test_times_survive_a_kill(model, tmp_path):
    """The seconds of the resumed step must be at least those of the checkpoint."""
    tasks = write_tasks(tmp_path, [write_task(tmp_path, "first", seed=6)])
    output = tmp_path / "out"
    process = subprocess.Popen(command(model, tasks, output, steps=60, checkpoint_every=5), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if list((output / "attempts").glob("*.checkpoint")):
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    checkpoint, = (output / "attempts").glob("*.checkpoint")
    saved = json.loads(notes_of(checkpoint))
    rewrite(checkpoint, saved | {"seconds": 1000 + saved["seconds"]})
    fuse(model, tasks, output, steps=60, checkpoint_every=5)
    report = report_of(output)
    assert report["steps"][0]["seconds"] > 1000 + saved["seconds"] and report["seconds"] > 1000


def rewrite(checkpoint, notes):
    import torch
    from safetensors.torch import load_file, save_file
    tensors = load_file(checkpoint)
    tensors["state"] = torch.tensor(list(json.dumps(notes).encode()), dtype=torch.uint8)
    save_file(tensors, checkpoint)


@pytest.mark.parametrize("part", ["train", "validation"])
def test_changed_picture_under_the_same_path_is_new_data(model, tmp_path, part):
    import numpy as np
    tasks = write_tasks(tmp_path, [write_task(tmp_path, "first", seed=6)])
    output = tmp_path / "out"
    fuse(model, tasks, output, steps=4)
    done = fuse(model, tasks, output, log_level="warning", steps=4)
    assert "have changed" not in done.stdout + done.stderr and len(json.loads((output / "state.json").read_text())["attempts"]["steps"]) == 1
    picture = f"first-{part}-1.png"
    stat = (tmp_path / picture).stat()
    draw(tmp_path, picture, "red", np.random.default_rng(99))
    os.utime(tmp_path / picture, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = fuse(model, tasks, output, log_level="warning", steps=4)
    assert "task first: its data, pictures, prompts or scoring have changed since the last run" in done.stdout + done.stderr
    assert len(json.loads((output / "state.json").read_text())["attempts"]["steps"]) == 2


def test_changed_scoring_is_measured_again(model, tmp_path):
    task = write_task(tmp_path, "first", seed=6)
    output = tmp_path / "out"
    fuse(model, write_tasks(tmp_path, [task]), output, steps=4)
    fuse(model, write_tasks(tmp_path, [task | {"max_answer_tokens": 32}]), output, steps=4)
    assert len(json.loads((output / "state.json").read_text())["base"]) == 2


def test_missed_floor_exits_with_status_three(model, tmp_path):
    tasks = write_tasks(tmp_path, [write_task(tmp_path, "first", 6, seed=5) | {"floor": 1.0}])
    output = tmp_path / "out"
    done = fuse(model, tasks, output, "--json", steps=1, status=3)
    assert json.loads(done.stdout)["adapters"][0]["below_floor"] == ["first"]

    def measure(*flags):
        return subprocess.run([find_program("valora"), "--log-level", "error", "eval", "--model", str(model), "--tasks", str(tasks), "--threads", "1",
                               "--dtype", "float32", *flags], capture_output=True, text=True, timeout=120).returncode

    assert measure("--manifest", str(output / "manifest.json")) == 3
    assert measure() == 3, "the base model alone"
    lenient = json.loads(tasks.read_text())
    lenient["tasks"][0]["floor"] = 0
    tasks.write_text(json.dumps(lenient))
    assert measure("--manifest", str(output / "manifest.json")) == 0
    assert fuse(model, tasks, output, steps=1).returncode == 0
