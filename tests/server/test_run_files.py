"""`valora run` on the demo's model: outputs of each kind, errors as rows, runs that were killed."""

import csv
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from programs import find_program
from serving import ServedProcess, data_url, image_part, picture, text_part

DEMO = pathlib.Path(__file__).resolve().parents[2] / "demo"
ENGINE = ["--model", DEMO / "model", "--manifest", DEMO / "manifest.json", "--dtype", "float32", "--threads", "1"]
QUESTION = "Find all coins and cards."


def command(*options):
    return [find_program("valora"), "--log-level", "warning", "run", *map(str, [*ENGINE, *options])]


def run(*options, status=0):
    done = subprocess.run(command(*options), capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stderr


def json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def kill_in_the_middle(output, *options):
    """Starts the run and kills it once the output has grown; returns whether it was still running."""
    before = output.stat().st_size if output.exists() else 0
    process = subprocess.Popen(command(*options), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if output.exists() and output.stat().st_size > before + 300:
            break
        time.sleep(0.002)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return running


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The demo's coins, many times, and two folders deep."""
    root = tmp_path_factory.mktemp("pictures")
    for i in range(120):
        folder = root / f"{i % 3}"
        folder.mkdir(exist_ok=True)
        shutil.copy(DEMO / "samples" / f"coins-{1 + i % 3}.png", folder / f"{i:03}.png")
    return root


@pytest.fixture(scope="module")
def server():
    made = ServedProcess(*map(str, ENGINE), "--served-model-name", "demo")
    yield made
    assert made.stop() == 0


def live_boxes(server, path, **extra):
    answer = server.post("/v1/chat/completions", {
        "model": "coins", "temperature": 0, "response_format": {"type": "boxes"},
        "messages": [{"role": "user", "content": [image_part(path.read_bytes()), text_part(QUESTION)]}]} | extra)
    return json.loads(answer["choices"][0]["message"]["content"])


def test_run_killed_five_times_has_every_row_once(pictures, server, tmp_path):
    output = tmp_path / "out.jsonl"
    options = ["--task", "coins", "--input", f"{pictures}/**/*.png", "--output", output, "--in-flight", 4]
    assert sum(kill_in_the_middle(output, *options) for _ in range(5)) >= 4  # the last one may have been quick
    with output.open("a") as file:
        file.write('{"name":"torn')  # as a kill within a write leaves it
    run(*options)
    rows = json_lines(output)
    assert sorted(row["name"] for row in rows) == sorted(str(path) for path in pictures.glob("*/*.png"))
    live = [live_boxes(server, DEMO / "samples" / f"coins-{i}.png") for i in (1, 2, 3)]
    assert all(row["boxes"] == live[int(pathlib.Path(row["name"]).stem) % 3] for row in rows)
    before = output.read_bytes()
    assert "120 rows" in run(*options)
    assert output.read_bytes() == before


def test_coco_has_the_boxes_of_live_answers(pictures, server, tmp_path):
    output = tmp_path / "coins.json"
    broken = tmp_path / "broken.png"
    broken.write_bytes((DEMO / "samples/coins-1.png").read_bytes()[:200])
    options = ["--task", "coins", "--input", DEMO / "samples/coins-*.png", broken, "--output", output]
    assert "4 rows" in run(*options)
    coco = json.loads(output.read_text())
    assert [category["name"] for category in coco["categories"]] == ["coin", "card"]
    labels = {category["id"]: category["name"] for category in coco["categories"]}
    assert [pathlib.Path(image["file_name"]).name for image in coco["images"]] == [f"coins-{i}.png" for i in (1, 2, 3)]
    assert all((image["width"], image["height"]) == (64, 64) for image in coco["images"])
    for image in coco["images"]:
        found = [(labels[a["category_id"]], a["bbox"]) for a in coco["annotations"] if a["image_id"] == image["id"]]
        live = live_boxes(server, pathlib.Path(image["file_name"]))
        assert [label for label, _ in found] == [box["label"] for box in live]
        for (_, (x, y, width, height)), box in zip(found, live):
            assert [x, y, x + width, y + height] == pytest.approx(box["box"])
    assert [pathlib.Path(error["file_name"]).name for error in coco["errors"]] == ["broken.png"]


def known_boxes(task):
    """By picture, the labels and corners, in pixels, that the demo's data have."""
    samples = [s for s in json.loads((DEMO / "samples.json").read_text()) if s["task"] == task and s["adapter"]]
    known = {}
    for sample in samples:
        labels = re.findall(r"<ref>(.*?)</ref>", sample["expected"]) or [task]
        corners = [int(digits) * 0.64 for digits in re.findall(r"\d+", re.sub(r"<.*?>", " ", sample["expected"]))]
        known[pathlib.Path(sample["media"]).name] = [(label, corners[4 * i:4 * i + 4]) for i, label in enumerate(labels)]
    return known


def overlap(box, corners):
    x, y, width, height = box
    x0, y0, x1, y1 = corners
    both = max(0, min(x + width, x1) - max(x, x0)) * max(0, min(y + height, y1) - max(y, y0))
    return both / (width * height + (x1 - x0) * (y1 - y0) - both)


@pytest.mark.parametrize("task", ["coins", "cars"])
def test_coco_of_known_boxes(task, tmp_path):
    output = tmp_path / "boxes.json"
    run("--task", task, "--input", DEMO / f"samples/{task}-*.png", "--output", output)
    coco = json.loads(output.read_text())
    labels = {category["id"]: category["name"] for category in coco["categories"]}
    known = known_boxes(task)
    assert len(coco["images"]) == len(known) == 3
    for image in coco["images"]:
        found = [(labels[a["category_id"]], a["bbox"]) for a in coco["annotations"] if a["image_id"] == image["id"]]
        sought = known[pathlib.Path(image["file_name"]).name]
        assert sorted(label for label, _ in found) == sorted(label for label, _ in sought)
        for label, box in found:
            assert max(overlap(box, corners) for name, corners in sought if name == label) > 0.35  # the tiny model is not exact


def test_csv_names_labels_and_errors(tmp_path):
    table = tmp_path / "digits.csv"
    shutil.copy(DEMO / "samples/digits-1.png", tmp_path / "one.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    table.write_text("name,image,prompt\nfirst,one.png,\n\"second, again\",one.png,Which digit?\nthird,bad.png,\n")
    output = tmp_path / "out.csv"
    run("--task", "digits", "--input", table, "--output", output)
    rows = {row["name"]: row for row in csv.DictReader(output.open(newline=""))}
    assert rows.keys() == {"first", "second, again", "third"}
    assert rows["first"]["answer"] == rows["first"]["label"] == rows["second, again"]["label"] == "1"
    assert rows["first"]["error"] == "" and rows["third"]["answer"] == "" and "image" in rows["third"]["error"]


def openai_line(name, body, url="/v1/chat/completions"):
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body}) + "\n"


def test_openai_lines_are_answered_as_live_requests(server, tmp_path):
    bodies = {f"r{i}": {"model": "coins", "temperature": 0, "max_tokens": 20, "messages": [{"role": "user", "content": [
        image_part(data_url(picture(i))), text_part(QUESTION)]}]} for i in range(6)}
    bodies["none"] = {"model": "nobody", "messages": [{"role": "user", "content": "x"}]}
    lines = "".join(openai_line(name, body) for name, body in bodies.items())
    lines += openai_line("completion", {"prompt": "The", "max_tokens": 4, "temperature": 0}, "/v1/completions")
    (tmp_path / "in.jsonl").write_text(lines)
    output = tmp_path / "out.jsonl"
    assert "8 rows" in run("--input", tmp_path / "in.jsonl", "--output", output)
    rows = {row["custom_id"]: row for row in json_lines(output)}
    assert rows.keys() == bodies.keys() | {"completion"}
    assert rows["none"]["response"]["status_code"] == 404
    for name in bodies.keys() - {"none"}:
        live = server.post("/v1/chat/completions", bodies[name])
        response = rows[name]["response"]
        assert response["status_code"] == 200 and response["body"]["choices"] == live["choices"]
        assert response["body"].keys() == live.keys()
    assert rows["completion"]["response"]["body"]["choices"][0]["text"]


def test_run_stops_at_a_signal_and_goes_on(pictures, tmp_path):
    output = tmp_path / "out.csv"
    options = ["--task", "coins", "--input", pictures, "--output", output, "--in-flight", 2]
    process = subprocess.Popen(command(*options), stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (output.exists() and output.read_bytes().count(b"\n") > 5):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "the same command goes on" in told, told
    run(*options)
    names = [row["name"] for row in csv.DictReader(output.open(newline=""))]
    assert sorted(names) == sorted(str(path) for path in pictures.glob("*/*.png"))


@pytest.mark.parametrize("options, words", [
    (["--task", "nobody", "--output", "o.jsonl"], "has no task nobody"),
    (["--task", "digits", "--output", "o.txt"], "must end in .jsonl, .csv, or .json"),
    (["--task", "digits", "--output", "o.json"], "a COCO file has boxes"),
    (["--task", "coins", "--adapter", "x", "--output", "o.jsonl"], "exclude each other"),
    (["--output", "o.jsonl"], "--prompt is missing"),
    (["--task", "coins", "--output", "missing/o.jsonl"], "cannot be written"),
])
def test_wrong_options_are_named(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in run(*options, "--input", DEMO / "samples/coins-1.png", status=1)


def test_other_settings_are_refused_until_fresh(tmp_path):
    options = ["--task", "coins", "--input", DEMO / "samples/coins-1.png", "--output", tmp_path / "o.jsonl"]
    run(*options)
    assert 'with another "prompt"' in run(*options, "--prompt", "Find.", status=1)
    run(*options, "--prompt", "Find.", "--fresh")
    assert len(json_lines(tmp_path / "o.jsonl")) == 1


def test_full_disk_is_an_error_that_loses_nothing(pictures, tmp_path):
    """A limit on the size of files stands for a full disk."""
    output = tmp_path / "out.jsonl"
    options = ["--task", "coins", "--input", pictures, "--output", output]
    limited = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 4; exec "$@"', "-", *command(*options)],
                             capture_output=True, text=True, timeout=120)
    assert limited.returncode == 1 and f"{output} cannot be written: File too large" in limited.stderr, limited.stderr
    kept = json_lines(output)  # whole rows alone
    run(*options)
    rows = json_lines(output)
    assert rows[:len(kept)] == kept and len({row["name"] for row in rows}) == len(rows) == 120
