"""`valora fuse` and `valora eval` as run by users, on a tiny random checkpoint and drawn pictures."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time

import peft
import pytest
from safetensors.torch import load_file, save_file

import checkpoints
import rounded_weights
from fusing import (
    COLOURS,
    MODEL,
    bytes_of,
    command,
    fuse,
    report_of,
    strip_times,
    write_task,
    write_tasks,
)
from programs import find_program


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return checkpoints.save_model(checkpoints.make_model(MODEL), tmp_path_factory.mktemp("model") / MODEL)


@pytest.fixture
def root(tmp_path):
    return tmp_path


def test_tasks_without_floors_share_one_adapter(model, root):
    tasks = [write_task(root, "first", seed=1), write_task(root, "second", seed=2) | {"head": True}]
    fuse(model, write_tasks(root, tasks), root / "out", "--alone")
    report = report_of(root / "out")
    assert [(s["task"], s["adapter"], s["kept"]) for s in report["steps"]] == [("first", "adapter-1", True), ("second", "adapter-1", True)]
    assert report["steps"][1]["samples_before"] == 36  # half of 12 steps of 6 samples
    assert [t["alone"] is not None for t in report["tasks"]] == [True, True]
    manifest = json.loads((root / "out" / "manifest.json").read_text())["tasks"]
    assert manifest["first"]["adapter"] == "adapters/adapter-1" and manifest["first"].get("head") is None
    assert manifest["second"]["head"] == "score_second"
    assert [manifest[name]["labels"] for name in ("first", "second")] == [sorted(COLOURS)] * 2 and "boxes" not in manifest["first"]
    assert {p.name for p in (root / "out").iterdir()} == {"adapters", "attempts", "manifest.json", "report.html", "report.json", "state.json"}
    base = checkpoints.make_model(MODEL)
    loaded = peft.PeftModel.from_pretrained(base, root / "out" / "adapters" / "adapter-1")
    written = load_file(root / "out" / "adapters" / "adapter-1" / "adapter_model.safetensors")
    assert {n for n in written if "lora" in n} == set(peft.get_peft_model_state_dict(loaded)) - {n for n in written if "score" in n}


def test_activated_adapters_come_first_and_plain_ones_where_floors_need_them(model, root):
    """The floors are chosen so that no activated adapter of these few steps holds `second`."""
    tasks = [write_task(root, "first", seed=1), write_task(root, "second", seed=2) | {"head": True},
             write_task(root, "third", seed=3) | {"activation": False}]
    fuse(model, write_tasks(root, tasks), root / "all", "--activated")
    report = report_of(root / "all")
    assert [(a["tasks"], a["activated"]) for a in report["adapters"]] == [(["first", "second"], True), (["third"], False)]
    config = json.loads((root / "all" / "adapters" / "adapter-1" / "adapter_config.json").read_text())
    plain = json.loads((root / "all" / "adapters" / "adapter-2" / "adapter_config.json").read_text())
    assert len(config["alora_invocation_tokens"]) > 1 and "alora_invocation_tokens" not in plain
    accuracy = {name: value for adapter in report["adapters"] for name, value in adapter["accuracies"].items()}
    tasks = [tasks[0] | {"activation": True}, tasks[1] | {"activation": {"invocation": "colour"}, "floor": 1.0}]
    done = fuse(model, write_tasks(root, tasks), root / "floors", status=None)
    assert done.returncode in (0, 3)
    steps = report_of(root / "floors")["steps"]
    assert [s["activated"] for s in steps if s["task"] == "first"] == [True]
    tried = [s["activated"] for s in steps if s["task"] == "second"]
    assert tried == sorted(tried, reverse=True) and (len(tried) > 1 or steps[-1]["kept"])
    assert accuracy.keys() == {"first", "second", "third"}


def test_invocation_that_a_prompt_lacks_is_refused(model, root):
    tasks = [write_task(root, "first", seed=1) | {"activation": {"invocation": "zebra"}}]
    done = fuse(model, write_tasks(root, tasks), root / "out", status=1)
    assert "first-train.jsonl:1: its prompt does not have the tokens of the invocation" in done.stderr
    done = fuse(model, write_tasks(root, [write_task(root, "first", seed=1)]), root / "out", "--activated", status=1, targets="decoder,vision")
    assert "--targets decoder" in done.stderr


def test_report_equals_what_eval_measures(model, root):
    tasks = write_tasks(root, [write_task(root, "first", seed=1), write_task(root, "second", seed=2) | {"head": True}])
    fuse(model, tasks, root / "out")
    done = subprocess.run([find_program("valora"), "--log-level", "error", "eval", "--model", str(model), "--tasks", str(tasks), "--dtype", "float32",
                           "--manifest", str(root / "out" / "manifest.json"), "--json", "--threads", "1"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    for name, accuracy in report_of(root / "out")["adapters"][0]["accuracies"].items():
        assert f"{accuracy}"[:6] in text, (name, accuracy, text[:2000])


@pytest.mark.parametrize("bits", [4, 8])
def test_quantization_trains_beside_the_decoded_weights(model, root, bits):
    """Trained adapters equal those of a checkpoint of the decoded weights, but not those of the base's own."""
    decoded = checkpoints.save_model(rounded_weights.decoded_model(checkpoints.make_model(MODEL), bits), root / "decoded")
    tasks = write_tasks(root, [write_task(root, "first", seed=1)])
    trained = {}
    for name, folder, flags in [("rounded", model, [f"--quantization=int{bits}"]), ("decoded", decoded, []), ("base", model, [])]:
        fuse(folder, tasks, root / name, *flags)
        trained[name] = load_file(root / name / "adapters" / "adapter-1" / "adapter_model.safetensors")
    assert report_of(root / "rounded")["options"]["quantization"] == f"int{bits}"

    def distance(name):
        return max((trained["rounded"][key] - value).abs().max().item() for key, value in trained[name].items())

    assert distance("decoded") < 1e-5 < 1e-3 < distance("base")


def test_missed_floor_rolls_back(model, root):
    """The second task contradicts the first: same question and kind of pictures, different
    names."""
    first = write_task(root, "first", count=30, seed=3)
    second = write_task(root, "second", count=30, seed=4, answer=lambda colour: {"red": "blue", "green": "red", "blue": "green"}[colour])
    question = {"question": "Which colour is it?", "floor": 0.6}
    tasks = write_tasks(root, [first | question, second | question])
    fuse(model, tasks, root / "out", steps=60)
    report = report_of(root / "out")
    assert [(s["task"], s["adapter"], s["kept"]) for s in report["steps"]] == [
        ("first", "adapter-1", True), ("second", "adapter-1", False), ("second", "adapter-2", True)]
    assert "rolled back: " in report["steps"][1]["why"] and " < 0.600" in report["steps"][1]["why"]
    assert report["adapters"][0]["tasks"] == ["first"] and report["adapters"][1]["tasks"] == ["second"]
    assert all(a["below_floor"] == [] for a in report["adapters"])
    assert report["adapters"][0]["accuracies"]["first"] == report["steps"][0]["accuracies"]["first"]


def test_higher_rank_continues_from_the_trained_adapter(model, root):
    """The second task trains on the same kind of data as the first, but its validation labels contradict it."""
    names = {"red": "blue", "green": "red", "blue": "green"}
    question = {"question": "Which colour is it?"}
    first, second = write_task(root, "first", count=30, seed=3) | question, write_task(root, "second", count=30, seed=4) | question | {"floor": 0.5}
    samples = [json.loads(line) for line in (root / second["validation"]).read_text().splitlines()]
    (root / second["validation"]).write_text("\n".join(json.dumps(s | {"label": names[s["label"]]}) for s in samples) + "\n")
    fuse(model, write_tasks(root, [first, second]), root / "out", steps=60, rank="4,8", status=3)
    steps = report_of(root / "out")["steps"]
    assert [(s["task"], s["adapter"], s["rank"]) for s in steps] == [
        ("first", "adapter-1", 4), ("second", "adapter-1", 4), ("second", "adapter-1", 8), ("second", "adapter-2", 4), ("second", "adapter-2", 8)]
    assert [s["kept"] for s in steps[:3]] == [True, False, False] and sum(s["kept"] for s in steps[3:]) == 1
    for grown in steps[1:3]:
        assert grown["first_loss"] < steps[0]["first_loss"] / 4 and grown["accuracies"]["first"] > 0.8, grown


def test_later_tasks_start_at_the_rank_that_an_adapter_grew_to(model, root):
    """The first run fits `second` nowhere. Then its stored accuracy at the higher rank reaches the floor."""
    tasks = [write_task(root, name, count=6, seed=seed) for name, seed in (("first", 1), ("second", 2), ("third", 3))]
    tasks[1] |= {"floor": 1.0}
    fuse(model, write_tasks(root, tasks[:2]), root / "out", steps=1, rank="2,4", status=3)
    state = json.loads((root / "out" / "state.json").read_text())
    for lineage, step in zip(state["attempts"]["lineages"], state["attempts"]["steps"], strict=True):
        if lineage.startswith("first:") and lineage.endswith("@4"):
            step["accuracies"]["second"] = 1.0
    (root / "out" / "state.json").write_text(json.dumps(state))
    fuse(model, write_tasks(root, tasks), root / "out", "--replace", steps=1, rank="2,4")
    assert [(s["task"], s["adapter"], s["rank"]) for s in report_of(root / "out")["steps"]] == [
        ("first", "adapter-1", 2), ("second", "adapter-1", 2), ("second", "adapter-1", 4), ("third", "adapter-1", 4), ("third", "adapter-2", 2)]


def test_adapter_can_be_a_teacher(model, root):
    """The teacher swaps the colour names, so answers with swapped names show that the adapter has learned from
    it."""
    names = {"red": "blue", "green": "red", "blue": "green"}
    first = write_task(root, "first", count=30, seed=3, answer=names.get)
    fuse(model, write_tasks(root, [first]), root / "teacher", steps=80)
    assert report_of(root / "teacher")["adapters"][0]["accuracies"]["first"] > 0.8
    second = write_task(root, "second", count=30, seed=4, answer=names.get)
    unlabelled = [{"image": json.loads(line)["image"]} for line in (root / second.pop("train")).read_text().splitlines()]
    (root / "unlabelled.jsonl").write_text("\n".join(map(json.dumps, unlabelled)) + "\n")
    second |= {"question": first["question"], "labels": list(names), "teacher": {
        "kind": "adapter", "path": "teacher/adapters/adapter-1", "inputs": "unlabelled.jsonl", "confidence": 0.3}}
    fuse(model, write_tasks(root, [second]), root / "out", steps=80)
    task = report_of(root / "out")["tasks"][0]
    assert task["train_samples"] + task["dropped"] == 30 and task["train_samples"] > 20
    assert report_of(root / "out")["adapters"][0]["accuracies"]["second"] > 0.8


def test_unreachable_floor_is_reported(model, root):
    tasks = write_tasks(root, [write_task(root, "first", seed=5) | {"floor": 1.0}])
    done = fuse(model, tasks, root / "out", steps=1, rank="2,4", status=3)
    report = report_of(root / "out")
    assert [s["rank"] for s in report["steps"]] == [2, 4], "each attempt once"
    kept, = [s for s in report["steps"] if s["kept"]]
    assert "below its floor" in kept["why"] and kept["seconds"] > 0
    assert kept["accuracies"]["first"] == max(s["accuracies"]["first"] for s in report["steps"])
    assert report["adapters"][0]["below_floor"] == ["first"] and report["adapters"][0]["rank"] == kept["rank"]
    assert report["seconds"] == pytest.approx(sum(s["seconds"] + s["evaluation_seconds"] for s in report["steps"]))
    assert done.stdout.count("kept below its floor") == 1 and "BELOW ITS FLOOR" in done.stdout


def test_training_stops_without_improvement(model, root):
    tasks = write_tasks(root, [write_task(root, "first", seed=11)])
    fuse(model, tasks, root / "out", evaluate_every=2, patience=2, learning_rate=1e-12)
    assert report_of(root / "out")["steps"][0]["steps"] == 6  # the first evaluation, and two that were no better


def test_tasks_are_tried_in_the_requested_order(model, root):
    tasks = [write_task(root, name, count=6, seed=12) | {"floor": floor} for name, floor in (("easy", 0.1), ("hard", 0.9), ("middle", 0.5))]
    path = write_tasks(root, tasks)
    first = {}
    for order in ("given", "hardest", "random"):
        fuse(model, path, root / order, steps=1, order=order, status=None)
        first[order] = list(dict.fromkeys(s["task"] for s in report_of(root / order)["steps"]))
    assert first["given"] == ["easy", "hard", "middle"]
    assert first["hardest"] == ["hard", "middle", "easy"]
    assert sorted(first["random"]) == ["easy", "hard", "middle"]


def test_first_fit_tries_every_adapter(model, root):
    """The third task matches the first one and contradicts the second."""
    other = {"red": "blue", "green": "red", "blue": "green"}.get
    question = {"question": "Which colour is it?", "floor": 0.6}
    tasks = write_tasks(root, [write_task(root, "first", 30, 3) | question, write_task(root, "second", 30, 4, other) | question,
                               write_task(root, "third", 30, 5) | question])
    fuse(model, tasks, root / "out", steps=60, packing="first-fit")
    assert [a["tasks"] for a in report_of(root / "out")["adapters"]] == [["first", "third"], ["second"]]


def test_changed_floors_reuse_earlier_results(model, root):
    """Results of an earlier run are reused: with lower floors all tasks fit into one adapter, with the first run's
    figures."""
    first = write_task(root, "first", count=30, seed=3)
    second = write_task(root, "second", count=30, seed=4, answer=lambda colour: {"red": "blue", "green": "red", "blue": "green"}[colour])
    question = {"question": "Which colour is it?"}
    fuse(model, write_tasks(root, [first | question | {"floor": 0.6}, second | question | {"floor": 0.6}]), root / "out", steps=60)
    strict = report_of(root / "out")
    fuse(model, write_tasks(root, [first | question, second | question]), root / "out", steps=60)
    loose = report_of(root / "out")
    assert [a["tasks"] for a in loose["adapters"]] == [["first", "second"]]
    assert [p.name for p in (root / "out" / "adapters").iterdir()] == ["adapter-1-r2"], "written beside the old one"
    assert loose["adapters"][0]["name"] == "adapter-1" and loose["adapters"][0]["path"] == "adapters/adapter-1-r2"
    for before, after in zip(strict["steps"], loose["steps"]):
        assert (before["accuracies"], before["seconds"]) == (after["accuracies"], after["seconds"])


def test_run_resumes_after_a_kill_at_any_point(model, root):
    question = {"floor": 0.2}
    tasks = write_tasks(root, [write_task(root, "first", seed=6) | question, write_task(root, "second", seed=7) | question | {"head": True}])
    fuse(model, tasks, root / "whole", steps=40)
    for delay in (0.5, 0.9, 1.4, 1.9, 2.4):
        process = subprocess.Popen(command(model, tasks, root / "out", steps=40), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    fuse(model, tasks, root / "out", steps=40)
    assert bytes_of(root / "out") == bytes_of(root / "whole")
    assert strip_times(report_of(root / "out")) == strip_times(report_of(root / "whole"))


def test_second_run_in_the_same_folder_is_refused(model, root):
    tasks = write_tasks(root, [write_task(root, "first", seed=8)])
    fuse(model, tasks, root / "out", steps=2)
    done = fuse(model, tasks, root / "out", status=1, steps=3)
    assert "state.json belongs to another model or training" in done.stderr and "--restart" in done.stderr
    fuse(model, tasks, root / "out", "--restart", steps=3)
    other = shutil.copytree(model, root / "other")
    weights = load_file(other / "model.safetensors")
    save_file({name: tensor * 1.01 for name, tensor in weights.items()}, other / "model.safetensors", {"format": "pt"})
    done = fuse(other, tasks, root / "out", status=1, steps=3)
    assert "belongs to another model" in done.stderr, "one of the same shapes, but trained apart"


def spoil(root, name, line, change):
    path = root / f"{name}-train.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = change(json.loads(lines[line - 1]))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("change, message", [
    (lambda sample: "{", "first-train.jsonl:5: "),
    (lambda sample: json.dumps(sample | {"image": "nowhere.png"}), "nowhere.png"),
    (lambda sample: json.dumps({"image": sample["image"]}), "first-train.jsonl:5: "),
    (lambda sample: json.dumps(sample | {"image": "broken.png"}), "first-train.jsonl:5: "),
], ids=["broken line", "missing picture", "no label", "broken picture"])
def test_invalid_data_is_named(model, root, change, message):
    task = write_task(root, "first", seed=9)
    (root / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    spoil(root, "first", 5, change)
    done = fuse(model, write_tasks(root, [task]), root / "out", status=1)
    assert message in done.stderr, done.stderr
    assert not (root / "out" / "manifest.json").exists()


def test_full_disk_is_reported_and_leaves_no_partial_files(model, root):
    """Limits the file size, so that every write of adapter weights fails, as on a full disk."""
    tasks = write_tasks(root, [write_task(root, "first", seed=10)])

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = fuse(model, tasks, root / "out", status=1, preexec=limit)
    assert "cannot be written: File too large" in done.stderr, done.stderr
    left = [p for p in (root / "out").rglob("*") if p.is_file()]
    assert all(p.name == "state.json" for p in left), left
    fuse(model, tasks, root / "out")  # with enough space the run continues
