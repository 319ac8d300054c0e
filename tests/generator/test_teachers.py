"""Teachers, through teacher_probe: TorchScript files made here, with valid and invalid outputs, and endpoints on loopback."""

import json
import os
import pathlib
import subprocess

import numpy
import pytest
import torch
from PIL import Image

from programs import find_program

LABELS = ["dark", "light", "grey"]


class Brightness(torch.nn.Module):
    """Scores three labels by the mean of a picture."""

    def forward(self, x):
        mean = x.mean(dim=[1, 2, 3])
        return torch.stack([-8 * mean, 8 * mean - 8, -3.5 + 0 * mean], 1)


class Expecting(torch.nn.Module):
    """Raises unless it receives exactly these pictures."""

    def __init__(self, expected):
        super().__init__()
        self.register_buffer("expected", expected)

    def forward(self, x):
        if x.shape != self.expected.shape:
            raise ValueError("another shape")
        if float((x - self.expected).abs().max()) > 1e-5:
            raise ValueError("other pixels")
        return torch.zeros(x.shape[0], 3)


class Raising(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no such picture was ever seen")
        return x


class Constant(torch.nn.Module):
    """Gives the same answer to every input."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer


def save(module, path):
    torch.jit.script(module).save(str(path))
    return str(path)


@pytest.fixture
def pictures(tmp_path):
    """Eight dark pictures, eight light ones, and four grey ones."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, brightness in enumerate([0] * 8 + [255] * 8 + [128] * 4):
        Image.new("RGB", (20 + i, 30), (brightness,) * 3).save(folder / f"{i:02}.png")
    return folder


def ask(tmp_path, teacher, *flags, environment=None, **task):
    """The probe's output for one task with this teacher."""
    task = {"name": "shade", "type": "classification", "labels": LABELS, "teacher": teacher} | task
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps({"tasks": [task]}))
    done = subprocess.run([find_program("teacher_probe"), str(path), "shade", *map(str, flags)], capture_output=True, text=True, timeout=120,
                          env=os.environ | (environment or {}))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def torchscript(path, inputs, **keys):
    return {"kind": "torchscript", "path": path, "inputs": str(inputs), "output": "scores", "size": [16, 12]} | keys


def test_scores_become_labels(tmp_path, pictures):
    teacher = torchscript(save(Brightness(), tmp_path / "t.pt"), pictures, validation_share=0.25)
    taught = ask(tmp_path, teacher, "--batch", 7)
    assert (len(taught["train"]), len(taught["validation"])) == (15, 5)
    by_name = {pathlib.Path(s["origin"]).name: s["labels"] for s in taught["train"] + taught["validation"]}
    assert by_name == {f"{i:02}.png": ["dark" if i < 8 else "light" if i < 16 else "grey"] for i in range(20)}
    assert taught["counts"]["labels"] == {"dark": 8, "light": 8, "grey": 4}
    assert taught == ask(tmp_path, teacher, "--batch", 20)  # independent of the batch size
    assert taught["validation"] != ask(tmp_path, teacher, "--seed", 1)["validation"]


def test_low_confidence_answers_are_dropped(tmp_path, pictures):
    # For grey pictures all three scores are near -4, so no label is certain.
    taught = ask(tmp_path, torchscript(save(Brightness(), tmp_path / "t.pt"), pictures, confidence=0.9))
    counts = taught["counts"]
    assert (counts["asked"], counts["kept"], counts["unsure"]) == (20, 16, 4)
    assert "grey" not in counts["labels"]


@pytest.mark.parametrize("channels", [3, 1])
def test_pictures_equal_those_of_pil(tmp_path, channels):
    folder = tmp_path / "noise"
    folder.mkdir()
    mean, std = [0.4, 0.5, 0.6][:channels], [0.2, 0.3, 0.5][:channels]
    expected = []
    for i in range(3):
        noise = numpy.random.default_rng(i).integers(0, 256, (40 + i, 33, 3), dtype=numpy.uint8)
        Image.fromarray(noise).save(folder / f"{i}.png")
        image = Image.fromarray(noise).resize((16, 12), Image.Resampling.BICUBIC)
        pixels = numpy.asarray(image.convert("L"))[..., None] if channels == 1 else numpy.asarray(image)
        expected.append(((pixels / 255 - mean) / std).transpose(2, 0, 1))
    path = save(Expecting(torch.tensor(numpy.stack(expected), dtype=torch.float32)), tmp_path / "t.pt")
    taught = ask(tmp_path, torchscript(path, folder, channels=channels, mean=mean, std=std))
    assert taught.get("counts", taught)["kept"] == 3, taught
    wrong = ask(tmp_path, torchscript(path, folder, channels=channels, mean=[0.1] * channels, std=std))
    assert "t.pt raised an error" in wrong["error"] and "other pixels" in wrong["error"]


@pytest.mark.parametrize("module, words", [
    (Raising(), ["raised an error", "no such picture was ever seen"]),
    (Constant(torch.zeros(20, 5)), ["Float [20, 5]", "Float [20, 3]"]),
    (Constant(torch.zeros(3)), ["Float [3]"]),
    (Constant(torch.zeros(20, 3, dtype=torch.int64)), ["Long [20, 3]"]),
    (Constant((torch.zeros(20, 3), torch.zeros(1))), ["(Float [20, 3], Float [1])"]),
    (Constant(torch.full((20, 3), float("nan"))), ["not finite"]),
])
def test_script_with_another_interface_is_named(tmp_path, pictures, module, words):
    answer = ask(tmp_path, torchscript(save(module, tmp_path / "odd.pt"), pictures))
    for word in ["odd.pt", *words]:
        assert word in answer["error"]
    assert "\n" not in answer["error"]


def test_unusable_files_are_named(tmp_path, pictures):
    (tmp_path / "text.pt").write_text("no script")
    error = ask(tmp_path, torchscript(str(tmp_path / "text.pt"), pictures))["error"]
    assert "text.pt is not a loadable TorchScript file" in error and "\n" not in error
    assert "gone.pt" in ask(tmp_path, torchscript(str(tmp_path / "gone.pt"), pictures))["error"]
    whole = (tmp_path / "whole.pt")
    save(Brightness(), whole)
    (tmp_path / "cut.pt").write_bytes(whole.read_bytes()[:-200])
    assert "cut.pt is not a loadable TorchScript file" in ask(tmp_path, torchscript(str(tmp_path / "cut.pt"), pictures))["error"]
    (pictures / "07.png").write_bytes(b"\x89PNG and no more")
    assert "07.png" in ask(tmp_path, torchscript(str(whole), pictures))["error"]


def boxes(*rows, dtype=torch.int64):
    """(boxes, scores, classes) from rows of x0, y0, x1, y1, score, class."""
    table = torch.tensor(rows, dtype=torch.float32).reshape(-1, 6)
    return table[:, :4].clone(), table[:, 4].clone(), table[:, 5].to(dtype)  # views of an empty table cannot be loaded again


def ask_boxes(tmp_path, pictures, answer, teacher=None, **task):
    path = save(Constant(answer), tmp_path / "boxes.pt")
    return ask(tmp_path, torchscript(path, pictures, output="boxes") | (teacher or {}), **{"type": "detection"} | task)


def test_boxes_are_in_pixels_of_the_declared_size(tmp_path, pictures):
    answer = boxes((0, 0, 8, 6, 0.6, 1), (4, 3, 99, 12, 0.9, 0), (1, 1, 2, 2, 0.2, 0), (20, 1, 30, 2, 0.9, 2))
    taught = ask_boxes(tmp_path, pictures, answer, {"confidence": 0.5})
    sample = taught["train"][0]
    assert sample["boxes"] == [{"label": "dark", "box": [0.25, 0.25, 1, 1]}, {"label": "light", "box": [0, 0, 0.5, 0.5]}]
    assert taught["counts"]["unsure_boxes"] == 20 and taught["counts"]["labels"] == {"dark": 20, "light": 20}


def test_empty_answers_are_counted_and_reported(tmp_path, pictures):
    nothing = boxes()
    named = ask_boxes(tmp_path, pictures, nothing)  # the default question asks for a label
    assert "20 are empty" in named["error"]
    open_question = ask_boxes(tmp_path, pictures, nothing, question="Box everything.")
    assert open_question["counts"]["kept"] == 20
    unsure = ask_boxes(tmp_path, pictures, boxes((0, 0, 1, 1, 0.1, 0)), {"confidence": 0.5}, question="Box everything.")
    assert "20 answers 20 are below the confidence" in unsure["error"]


@pytest.mark.parametrize("answer, words", [
    (torch.zeros(3, 4), "Float [3, 4]"),
    ((torch.zeros(3, 5), torch.zeros(3), torch.zeros(3, dtype=torch.int64)), "(Float [3, 5], Float [3], Long [3])"),
    ((torch.zeros(3, 4), torch.zeros(2), torch.zeros(3, dtype=torch.int64)), "Float [2]"),
    (boxes((0, 0, 1, 1, 0.9, 0), dtype=torch.float32), "Float [1])"),
    (boxes((0, 0, 1, 1, 0.9, 3)), "gave the class 3; the task's labels are 0 to 2"),
    (boxes((0, 0, float("inf"), 1, 0.9, 0)), "not finite"),
])
def test_boxes_of_the_wrong_shape_are_named(tmp_path, pictures, answer, words):
    error = ask_boxes(tmp_path, pictures, answer)["error"]
    assert "boxes.pt" in error and words in error


class FakeServer:
    def __init__(self, *options):
        self.process = subprocess.Popen([find_program("fake_server"), *options], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip() + "/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


def questions(tmp_path, pictures, texts):
    """Inputs that the scripted server answers with their own questions."""
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"image": str(pictures / f"{i:02}.png"), "question": text}) + "\n" for i, text in enumerate(texts)))
    return str(path)


def endpoint(url, inputs, **keys):
    return {"kind": "endpoint", "url": url, "model": "fake", "inputs": inputs} | keys


def test_endpoint_labels_samples(tmp_path, pictures):
    inputs = questions(tmp_path, pictures, ["dark", "Light.", "blue", "!media", "dark"])
    with FakeServer("--api-key", "sesame") as server:
        key = {"VALORA_TEACHER_API_KEY": "sesame"}
        taught = ask(tmp_path, endpoint(server.url, inputs), environment=key)
        assert [s["labels"] for s in taught["train"] + taught["validation"]].count(["dark"]) == 2
        counts = taught["counts"]
        assert (counts["asked"], counts["kept"], counts["foreign"], counts["unrated"]) == (5, 3, 2, 0)
        # Every token of the scripted server has log probability -0.5.
        assert "3 are below the confidence" in ask(tmp_path, endpoint(server.url, inputs, confidence=0.7), environment=key)["error"]
        refused = ask(tmp_path, endpoint(server.url, inputs), environment={"VALORA_TEACHER_API_KEY": "abracadabra"})["error"]
        assert "HTTP 401" in refused and "inputs.jsonl:" in refused and "abracadabra" not in refused


def test_endpoint_receives_the_pictures(tmp_path, pictures):
    """The scripted server answers with the length of each picture's URL."""
    inputs = questions(tmp_path, pictures, ["!media"])
    size = (pictures / "00.png").stat().st_size
    with FakeServer() as server:
        task = {"name": "shade", "type": "captioning", "teacher": endpoint(server.url, inputs)}
        (tmp_path / "tasks.json").write_text(json.dumps({"tasks": [task]}))
        done = subprocess.run([find_program("teacher_probe"), str(tmp_path / "tasks.json"), "shade"], capture_output=True, text=True, timeout=120)
    answer = json.loads(done.stdout)["train"][0]["answer"]
    assert answer == f"image:{len('data:image/png;base64,') + (size + 2) // 3 * 4}"


def test_unreachable_endpoint_is_reported(tmp_path, pictures):
    inputs = questions(tmp_path, pictures, ["dark"])
    error = ask(tmp_path, endpoint("http://127.0.0.1:1/v1", inputs), "--retries", 1, "--retry-seconds", 0.01)["error"]
    assert "http://127.0.0.1:1/v1/chat/completions: gave up after 2 tries" in error
