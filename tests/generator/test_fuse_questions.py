"""The questions that `valora fuse` writes to the manifest must be those used in training."""

import json
import subprocess

import pytest

import checkpoints
import families
from fusing import COLOURS, MODEL, fuse, manifest_of, report_of, write_task, write_tasks
from programs import find_program
from serving import ServedProcess, data_url, image_part, text_part


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoints.save_model(checkpoints.make_model(MODEL), tmp_path_factory.mktemp("model") / MODEL)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def evaluate(model, tasks, output, predictions, *flags):
    done = subprocess.run([find_program("valora"), "--log-level", "error", "eval", "--model", str(model), "--tasks", str(tasks), "--dtype", "float32",
                           "--threads", "1", "--json", "--manifest", str(output / "manifest.json"), "--predictions", str(predictions), *flags],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"], lines_of(predictions)


@pytest.mark.parametrize("question", [None, "One of {labels}: which?"], ids=["default", "template"])
def test_manifest_question_is_the_trained_one(model, tmp_path, question):
    """Served with the manifest and asked the manifest's question verbatim, the task must be as accurate as in
    training."""
    task = write_task(tmp_path, "colour", count=30, seed=3)
    head = write_task(tmp_path, "head", count=6, seed=4) | {"head": True}
    for each in (task, head):
        del each["question"]
        if question:
            each["question"] = question
    tasks = write_tasks(tmp_path, [task, head])
    output = tmp_path / "out"
    fuse(model, tasks, output, steps=60)
    expected = (question or "Which of these is it: {labels}?").replace("{labels}", ", ".join(sorted(COLOURS)))
    entries = manifest_of(output)
    assert [entries[name]["prompt"] for name in ("colour", "head")] == [expected, expected]
    card = json.loads((output / entries["head"]["adapter"] / "valora.json").read_text())
    assert card["heads"][0]["question"] == expected
    accuracy = report_of(output)["adapters"][0]["accuracies"]["colour"]
    assert accuracy > 0.6, "so that a wrong question shows"
    family = families.family_of(checkpoints.make_model(MODEL).config)
    processor = family.load_processor(model)
    server = ServedProcess("--model", model, "--dtype", "float32", "--threads", "1", "--max-model-len", "1024", "--manifest", output / "manifest.json")
    try:
        cards = {c["name"]: c for c in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
        right = 0
        for sample in lines_of(tmp_path / "colour-validation.jsonl"):
            picture = (tmp_path / sample["image"]).read_bytes()
            answer = server.post("/v1/chat/completions", {
                "model": "colour", "temperature": 0, "max_tokens": 8, "return_token_ids": True,
                "messages": [{"role": "user", "content": [image_part(picture), text_part(cards["colour"]["question"])]}]})
            right += answer["choices"][0]["message"]["content"] == sample["label"]
            trained = [{"role": "user", "content": [{"image": data_url(picture)}, expected]}]
            assert answer["prompt_token_ids"] == family.prompt(trained, True, processor)[0]
        assert right / 9 == pytest.approx(accuracy)
    finally:
        server.stop()
    results, predictions = evaluate(model, tasks, output, tmp_path / "p.jsonl", "--task", "colour")
    assert {p["question"] for p in predictions} == {expected} and results[0]["score"] == pytest.approx(accuracy)


def write_coco(root, name, count, seed):
    """Pictures with one box each, alternately of a car and a bus; a category "tram" has none."""
    task = write_task(root, name, count, seed)
    for part in ("train", "validation"):
        images = [json.loads(line)["image"] for line in (root / f"{name}-{part}.jsonl").read_text().splitlines()]
        (root / f"{name}-{part}.json").write_text(json.dumps({
            "images": [{"id": i, "file_name": image, "width": 56, "height": 56} for i, image in enumerate(images)],
            "annotations": [{"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [4, 4, 20, 20]} for i in range(len(images))],
            "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}, {"id": 3, "name": "tram"}]}))
    return {"name": name, "train": f"{task['name']}-train.json", "validation": f"{task['name']}-validation.json", "max_answer_tokens": 128}


def test_box_labels_are_coco_categories(model, tmp_path):
    detection = write_coco(tmp_path, "all", 6, 1) | {"type": "detection", "question": "Box everything."}
    named = write_coco(tmp_path, "named", 6, 2) | {"type": "detection"}
    grounding = write_coco(tmp_path, "found", 6, 3) | {"type": "grounding", "question": "Of {labels}: where is the {label}?"}
    expressions = write_task(tmp_path, "words", 6, 4)
    for part in ("train", "validation"):
        path = tmp_path / f"words-{part}.jsonl"
        path.write_text("".join(json.dumps({"image": s["image"], "label": f"the {s['label']} one", "boxes": [[0.1, 0.1, 0.5, 0.5]]}) + "\n"
                                for s in lines_of(path)))
    expressions = {key: expressions[key] for key in ("name", "train", "validation")} | {"type": "grounding", "max_answer_tokens": 128}
    fuse(model, write_tasks(tmp_path, [detection, named, grounding, expressions]), tmp_path / "out", steps=1)
    entries = manifest_of(tmp_path / "out")
    assert [entries[name].get("labels") for name in ("all", "named", "found", "words")] == [["bus", "car"]] * 3 + [None]
    assert entries["all"]["prompt"] == "Box everything."
    assert entries["named"]["prompt"] == "Please box all the objects in the picture that you think are {label}."
    assert entries["found"]["prompt"] == "Of bus, car: where is the {label}?"


def test_video_task_accepts_answers_instead_of_labels(model, tmp_path):
    task = write_task(tmp_path, "clip", 6, 5)
    for part in ("train", "validation"):
        path = tmp_path / f"clip-{part}.jsonl"
        path.write_text("".join(json.dumps({"frames": [s["image"], s["image"]], "answer": f"it is {s['label']}"}) + "\n" for s in lines_of(path)))
    task = {key: task[key] for key in ("name", "train", "validation")} | {"type": "video", "metric": "exact"}
    fuse(model, write_tasks(tmp_path, [task]), tmp_path / "out", steps=1)
    entry = manifest_of(tmp_path / "out")["clip"]
    assert "labels" not in entry and entry["prompt"].startswith("Please analyze the consecutive frames")


def test_manifest_has_a_question_only_if_samples_share_it(model, tmp_path):
    """If samples bring different questions, the manifest's question is empty; if they share one, it
    is that one."""
    tasks = []
    for name, question in (("each", "Number {}: which?"), ("same", "Which is it?")):
        task = write_task(tmp_path, name, 6, 6)
        del task["question"]
        for part in ("train", "validation"):
            path = tmp_path / f"{name}-{part}.jsonl"
            path.write_text("".join(json.dumps(s | {"question": question.format(i)}) + "\n" for i, s in enumerate(lines_of(path))))
        tasks.append(task)
    fuse(model, write_tasks(tmp_path, tasks), tmp_path / "out", steps=1)
    entries = manifest_of(tmp_path / "out")
    assert (entries["each"]["prompt"], entries["same"]["prompt"]) == ("", "Which is it?")


def shorten(path):
    """Gives the first sample a short answer."""
    samples = lines_of(path)
    samples[0]["label"] = "red"
    path.write_text("".join(json.dumps(s) + "\n" for s in samples))


def test_answers_longer_than_the_limit_are_reported(model, tmp_path):
    task = write_task(tmp_path, "long", 6, 7, answer=lambda colour: f"the picture is {colour} all over") | {"metric": "exact"}
    cut = write_tasks(tmp_path, [task | {"max_answer_tokens": 5}])
    refused = fuse(model, cut, tmp_path / "out", status=1, steps=1)
    assert "all 9 validation answers are longer than max_answer_tokens (5; " in refused.stderr and "raise max_answer_tokens" in refused.stderr
    for part in ("train", "validation"):
        shorten(tmp_path / f"long-{part}.jsonl")
    done = fuse(model, cut, tmp_path / "out", log_level="warning", steps=1)
    told = done.stdout + done.stderr
    assert "task long: 8 of 9 validation answers (89 %) are longer than max_answer_tokens (5; the longest has " in told
    assert "task long: 5 of 6 training answers (83 %) are longer than max_answer_tokens (5; the longest has " in told
    measured = subprocess.run([find_program("valora"), "--log-level", "warning", "eval", "--model", str(model), "--tasks", str(cut), "--threads", "1"],
                              capture_output=True, text=True, timeout=120)
    assert measured.returncode == 0 and "8 of 9 validation answers (89 %)" in measured.stdout + measured.stderr
    done = fuse(model, write_tasks(tmp_path, [task]), tmp_path / "out", log_level="warning", steps=1)
    assert "max_answer_tokens" not in done.stdout + done.stderr, "64 are enough"
