"""A small version of the files that tools/demo/datasets.py draws must match docs/tasks.md."""

import collections
import hashlib
import importlib.util
import json
import subprocess
import sys

import pytest
import yaml
from PIL import Image

from programs import REPOSITORY
from wide import EVERYTHING

SETS = ["tasks.yaml", "tasks-images.yaml", "tasks-videos.yaml", "tasks-teacher.yaml"]
LIMIT = 12
# Drawing H.264 clips requires tools/requirements-demo.txt; only one task has such clips.
DRAWN = [] if importlib.util.find_spec("av") else ["demo", "images", "actions", "barrier", "race", "teacher"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Folders laid out as in the repository: demo next to build-demo."""
    root = tmp_path_factory.mktemp("drawn")
    make(root, *DRAWN)
    return root


def make(root, *names):
    subprocess.run([sys.executable, REPOSITORY / "tools/demo/make.py", "datasets", *names, "--limit", str(LIMIT), "--demo", root / "demo",
                    "--work", root / "build-demo"], check=True, capture_output=True, timeout=300)


def tasks_of(root, name):
    return yaml.safe_load((root / "demo" / name).read_text())["tasks"]


def all_tasks(root):
    """All tasks that were drawn."""
    return {task["name"]: task for name in SETS for task in tasks_of(root, name) if not DRAWN or task["name"] != "light"}


def media_of(entry):
    return [entry[key] for key in ("image", "video") if key in entry] + entry.get("frames", [])


def lines_of(source, root):
    """(media files, other fields) of every sample of a source."""
    path = root / "demo" / (source if isinstance(source, str) else source["path"])
    form = "jsonl" if isinstance(source, str) else source["format"]
    if form == "jsonl":
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        return [([path.parent / name for name in media_of(e)], e) for e in entries]
    if form == "folder":
        return [([file], {"label": file.parent.name}) for file in sorted(path.rglob("*.png"))]
    table = json.loads(path.read_text())
    names = {c["id"]: c["name"] for c in table["categories"]}
    return [([path.parent / image["file_name"]],
             {"boxes": [coco_box(a["bbox"], image) for a in table["annotations"] if a["image_id"] == image["id"]],
              "labels": [names[a["category_id"]] for a in table["annotations"] if a["image_id"] == image["id"]]}) for image in table["images"]]


def coco_box(box, image):
    x, y, w, h = box
    return [x / image["width"], y / image["height"], (x + w) / image["width"], (y + h) / image["height"]]


def splits(task):
    return [task[key] for key in ("train", "validation") if key in task]


def test_committed_tasks_files_match_the_scripts(drawn):
    for name in SETS:
        assert (drawn / "demo" / name).read_text() == (REPOSITORY / "demo" / name).read_text(), name


def test_all_five_task_types_exist(drawn):
    tasks = tasks_of(drawn, "tasks.yaml")
    kinds = collections.Counter(t["type"] for t in tasks)
    assert len(tasks) >= 8 and {"classification", "question_answering", "captioning", "video"} <= set(kinds)
    assert kinds["detection"] + kinds["grounding"] >= 1
    assert all(0 < t["floor"] < 1 for t in tasks)


def test_every_sample_has_its_media_and_required_fields(drawn):
    for name, task in all_tasks(drawn).items():
        for source in splits(task):
            samples = lines_of(source, drawn)
            assert len(samples) == LIMIT, name
            for files, entry in samples:
                assert files, name
                for file in files:
                    assert file.stat().st_size > 0, file
                    if file.suffix == ".png":
                        assert Image.open(file).size == (64, 64)
                check_entry(task, entry)


def check_entry(task, entry):
    if task["type"] in ("detection", "grounding"):
        assert entry["boxes"]
        for x0, y0, x1, y1 in entry["boxes"]:
            assert 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1, entry
        assert set(entry.get("labels", [])) <= set(task.get("labels", []))
    elif "labels" in task:
        assert entry["label"] in task["labels"], entry
    else:
        assert entry["answer"] and (entry.get("question") or task["question"])
    if task["metric"] == "vqa":
        assert len(entry["answers"]) == 10
        assert collections.Counter(entry["answers"]).most_common(1)[0][0] == entry["answer"]


def digests(source, root):
    return {hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest() for files, _ in lines_of(source, root)}


def test_training_and_validation_are_disjoint(drawn):
    for name, task in all_tasks(drawn).items():
        if "train" in task:
            train, validation = (digests(source, drawn) for source in splits(task))
            assert train and validation and not train & validation, name


def test_teacher_recognises_unseen_digits(drawn):
    import torch
    task = all_tasks(drawn)["digits-taught"]
    teacher = task["teacher"]
    folder = drawn / "demo" / teacher["inputs"]["path"]
    labelled = [(files[0], e["label"]) for files, e in lines_of(all_tasks(drawn)["digits-labelled"]["train"], drawn)]
    assert {file.resolve() for file in folder.iterdir()} == {file.resolve() for file, _ in labelled}
    model = torch.jit.load(str(drawn / "demo" / teacher["path"]))
    right = 0
    for file, label in labelled:
        grey = Image.open(file).convert("L").resize(tuple(teacher["size"]), Image.BICUBIC)
        x = torch.tensor(list(grey.getdata()), dtype=torch.float32).view(1, 1, *teacher["size"]) / 255
        scores = model((x - teacher["mean"][0]) / teacher["std"][0])
        assert scores.shape == (1, len(task["labels"]))
        right += task["labels"][int(scores.argmax())] == label
    assert right >= 0.75 * len(labelled)


@pytest.mark.skipif(not EVERYTHING, reason="in make conformance")
def test_data_are_reproducible(drawn, tmp_path):
    names = ["digits", "street", "coins", "race"]  # H.264 files are not reproducible byte for byte
    make(tmp_path, *names)
    for name in names:
        for source in splits(all_tasks(drawn)[name]):
            assert digests(source, drawn) == digests(source, tmp_path), name
