"""`valora eval` on a tiny random checkpoint: scores, predictions, heads, manifests and refusals."""

import json
import pathlib
import subprocess

import pytest

import checkpoints
import serving
from programs import find_program, generate

COLOURS = serving.LABELS["three"]


@pytest.fixture(scope="module")
def tasks(folders, tmp_path_factory):
    """Twelve pictures with labels, and the same pictures with questions."""
    root = tmp_path_factory.mktemp("tasks")
    for i in range(12):
        (root / f"{i}.png").write_bytes(serving.picture(i))
    lines = [{"image": f"{i}.png", "label": COLOURS[i % 3]} for i in range(12)]
    (root / "colours.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    lines = [{"image": f"{i}.png", "question": "What is it?", "answers": ["nothing"] * 10} for i in range(12)]
    (root / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tasks = [{"name": "colours", "type": "classification", "train": "colours.jsonl", "validation": "colours.jsonl", "labels": COLOURS,
              "head": True, "question": "Which colour?", "floor": 0.99, "max_answer_tokens": 4},
             {"name": "questions", "type": "question_answering", "train": "questions.jsonl", "validation": "questions.jsonl",
              "max_answer_tokens": 8}]
    (root / "tasks.yaml").write_text(json.dumps({"tasks": tasks}))
    return root


def run(folders, tasks, *options, file="tasks.yaml"):
    return subprocess.run([find_program("valora"), "--log-level", "warning", "eval", "--model", folders["model"], "--tasks", tasks / file,
                           "--dtype", "float32", "--threads", "1", "--max-model-len", "1024", *map(str, options)],
                          capture_output=True, text=True, timeout=300)


def evaluate(folders, tasks, *options):
    done = run(folders, tasks, "--json", *options)
    assert done.returncode in (0, 3), done.stderr  # 3: below the floor
    return json.loads(done.stdout)["results"]


def test_head_answers_equal_those_of_generate(folders, tasks, tmp_path):
    lines = tmp_path / "predictions.jsonl"
    result, = evaluate(folders, tasks, "--task", "colours", "--adapter", folders["three"], "--predictions", lines)
    predictions = [json.loads(line) for line in lines.read_text().splitlines()]
    assert (result["head"], result["samples"], len(predictions)) == ("score", 12, 12)
    assert result["score"] == pytest.approx(sum(p["score"] for p in predictions) / 12)
    assert [p["labels"] for p in predictions] == [[COLOURS[i % 3]] for i in range(12)]
    for i in (0, 7):
        answer = generate(folders["model"], "--adapter", folders["three"], "--image", tasks / f"{i}.png", "--prompt", "Which colour?", "--classify")
        assert predictions[i]["prediction"] == [answer["label"]]
        assert predictions[i]["score"] == (answer["label"] == COLOURS[i % 3])
    confusion = result["confusion"]
    assert confusion["labels"] == COLOURS and [sum(row) for row in confusion["counts"]] == [4, 4, 4]
    assert sum(confusion["counts"][i][i] for i in range(3)) == round(12 * result["score"])
    assert 0 < result["latency_seconds"]["p50"] <= result["latency_seconds"]["p90"] <= result["seconds"]


def test_base_and_adapter_are_scored_side_by_side(folders, tasks):
    results = evaluate(folders, tasks, "--adapter", folders["three"], "--base", "--no-head", "--limit", 5)
    assert [(r["task"], r["adapter"], r["head"], r["samples"]) for r in results] == [
        (task, adapter, None, 5) for task in ("colours", "questions") for adapter in (None, str(folders["three"]))]
    assert all(r["completion_tokens"] > 0 for r in results)


def test_manifest_selects_adapter_head_and_question(folders, tasks, tmp_path):
    entries = {"colours": {"adapter": str(folders["three"]), "head": "score", "prompt": "Tell the colour", "metric": "top1"},
               "questions": {"adapter": str(folders["one"]), "prompt": "", "metric": "vqa"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"tasks": entries}))
    lines = tmp_path / "p.jsonl"
    results = evaluate(folders, tasks, "--manifest", tmp_path / "manifest.json", "--predictions", lines)
    assert [(r["task"], pathlib.Path(r["adapter"]).name, r["head"]) for r in results] == [
        ("colours", folders["three"].name, "score"), ("questions", folders["one"].name, None)]
    assert json.loads(lines.read_text().splitlines()[0])["question"] == "Tell the colour"
    missing = run(folders, tasks, "--manifest", tmp_path / "none.json")
    assert missing.returncode == 1 and "none.json" in missing.stderr


def test_table_reports_scores_and_confusion(folders, tasks):
    done = run(folders, tasks, "--adapter", folders["three"], "--limit", 6)
    assert done.returncode == 3, done.stderr  # the adapter is below the floor
    assert done.stderr == ""  # no progress bar without a terminal
    rows = done.stdout.splitlines()
    assert rows[0].split()[:6] == ["task", "model", "metric", "score", "floor", "samples"]
    assert rows[1].startswith("colours") and "0.990 (below)" in rows[1]
    assert "expected \\ answered" in done.stdout and "(other)" in done.stdout


def test_constrained_answers_are_scored(folders, tasks, tmp_path):
    lines = tmp_path / "p.jsonl"

    def answers(*form):
        evaluate(folders, tasks, "--adapter", folders["three"], "--no-head", "--limit", 5, "--predictions", lines, *form)
        return [json.loads(line)["prediction"] for line in lines.read_text().splitlines()]

    assert set(answers("--choice", "red,green")) <= {"red", "green"}
    assert all(len(answer) == 2 and set(answer) <= set("xy") for answer in answers("--regex", "[xy]{2}"))
    (tmp_path / "schema.json").write_text('{"type": "null"}')
    assert set(answers("--json-schema", tmp_path / "schema.json")) == {"null"}


def test_base_models_are_scored_by_their_own_boxes(folders, tmp_path):
    """A family that writes boxes as JSON, held to the task's labels; one whose marks take no list of them."""
    base = checkpoints.make_model("vl3-grouped-tied")
    grouped = {"model": checkpoints.save_model(base, tmp_path / "grouped")}
    pictures = [serving.picture(seed, 150, 90) for seed in (1, 2, 3)]
    for i, data in enumerate(pictures):
        (tmp_path / f"{i}.png").write_bytes(data)
    server = serving.Server(grouped)
    try:
        form = {"type": "boxes", "labels": ["car", "person"]}
        asked = [[serving.image_part(data), serving.text_part("Find every car, person.")] for data in pictures]
        answers = [server.chat("tiny", content, max_tokens=512, ignore_eos=False, response_format=form) for content in asked]
        truths = [json.loads(answer["choices"][0]["message"]["content"]) for answer in answers]
    finally:
        assert server.stop() == 0
    assert any(truths)
    lines = [{"image": f"{i}.png", "boxes": boxes, "box_unit": "pixels"} for i, boxes in enumerate(truths)]
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = {"name": "things", "type": "detection", "train": "things.jsonl", "validation": "things.jsonl", "labels": ["car", "person"],
            "question": "Find every {labels}."}
    (tmp_path / "tasks.yaml").write_text(json.dumps({"tasks": [task]}))
    result, = evaluate(grouped, tmp_path, "--boxes")
    assert result["score"] == 1  # what the server answers is found
    without, = evaluate(grouped, tmp_path)
    assert without["score"] < 1  # the base does not write the task's notation
    marks, = evaluate(folders, tmp_path, "--boxes")
    assert 0 <= marks["score"] <= 1
    done = run(grouped, tmp_path, "--boxes", "--regex", "a")
    assert done.returncode == 1 and "--boxes and --regex exclude each other" in done.stderr


def test_invalid_arguments_are_refused(folders, tasks, tmp_path):
    def refused(*options, **more):
        done = run(folders, tasks, *options, **more)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("error: "), done
        return done.stderr

    assert "has no task colors; it has colours, questions" in refused("--task", "colors")
    assert "exclude each other" in refused("--adapter", "a", "--manifest", "b")
    assert str(tmp_path / "no-adapter") in refused("--adapter", tmp_path / "no-adapter")
    assert "gone.yaml" in refused(file="gone.yaml")
    assert "--limit" in refused("--limit", 0)
    assert "exclude one another" in refused("--regex", "a", "--choice", "a,b")
    assert "--no-head" in refused("--task", "colours", "--adapter", folders["three"], "--choice", "a,b")
    assert "parenthesis" in refused("--limit", 1, "--regex", "(a")
    assert "folder.jsonl" in refused("--limit", 1, "--predictions", tmp_path / "no" / "folder.jsonl")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.png").write_bytes(b"\x89PNG and no more")
    (broken / "data.jsonl").write_text(json.dumps({"image": "a.png", "label": "red"}) + "\n")
    (broken / "tasks.yaml").write_text(json.dumps({"tasks": [{"name": "t", "type": "classification", "train": "data.jsonl",
                                                               "validation": "data.jsonl"}]}))
    assert "data.jsonl:1: " in refused(file=broken / "tasks.yaml")
