"""`response_format` of types labels and boxes: JSON of what a manifest's adapters write as text."""

import base64
import json
import mimetypes
import re

import pytest
from test_command_line import DEMO

from serving import (
    LABELS,
    ServedProcess,
    Server,
    chat_body,
    image_part,
    make_folders,
    picture,
    text_part,
)

BOXES, FORM = {"type": "boxes"}, {"type": "labels"}
THINGS = ["car", 'a "b"', "größe"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A random model, whose answers have the required form only because of the constraint."""
    root = tmp_path_factory.mktemp("shapes")
    folders = make_folders(root)
    (root / "manifest.json").write_text(json.dumps({"tasks": {
        "weather": {"adapter": "one", "labels": ["fog", "rain", "sun and wind"]},
        "things": {"adapter": "two", "labels": THINGS, "boxes": {"scale": 100}},
        "places": {"adapter": "two", "boxes": {"scale": 1000, "labels": False}},
        "colours": {"adapter": "three", "head": "score", "labels": LABELS["three"]}}}))
    server = Server({"model": folders["model"]}, "--manifest", str(root / "manifest.json"))
    yield server
    server.stop()


def ask(server, model, form, content=None, **more):
    body = chat_body(model, content or [image_part(picture(3, width=60, height=44)), text_part("What?")], response_format=form,
                     temperature=1, max_tokens=400, ignore_eos=False) | more
    return server.post("/v1/chat/completions", body)["choices"]


def token_of(server, text):
    """The token id of `text`, for a logit bias. Without one, the random model always makes the
    same choice between boxes and "none"."""
    token, = server.post("/tokenize", {"model": "tiny", "prompt": text, "add_special_tokens": False})["tokens"]
    return token


def check_boxes(boxes, width, height, labels):
    for box in boxes:
        assert list(box) == ["label", "box"] and box["label"] in labels
        x0, y0, x1, y1 = box["box"]
        assert 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height


def test_boxes_are_returned_as_json_in_pixels(server):
    n = token_of(server, "n")
    none = ask(server, "things", BOXES, logit_bias={str(n): 100})  # the model writes "none"
    assert none[0]["message"]["content"] == "[]"
    found = 0
    for model, labels in (("things", THINGS), ("places", [None])):
        for seed in range(16):
            for choice in ask(server, model, BOXES, seed=seed, n=2, logit_bias={str(n): -100}):
                boxes = json.loads(choice["message"]["content"])  # parses even if it was cut off
                check_boxes(boxes, 60, 44, labels)
                found += len(boxes)
    assert found > 3


def test_labels_are_returned_as_json(server):
    seen = {ask(server, "weather", FORM, "What?", seed=seed)[0]["message"]["content"] for seed in range(20)}
    assert {json.loads(text)["label"] for text in seen} <= {"fog", "rain", "sun and wind"} and len(seen) > 1
    cut = ask(server, "weather", FORM, "What?", max_tokens=1)[0]
    assert cut["finish_reason"] == "length" and json.loads(cut["message"]["content"]) == {"label": None}


def test_heads_return_the_same_format(server):
    plain = server.chat("colours", "What?")["choices"][0]["message"]["content"]
    assert plain in LABELS["three"]
    assert json.loads(ask(server, "colours", FORM, "What?")[0]["message"]["content"]) == {"label": plain}
    text = ask(server, "colours", FORM, "What?", head="")[0]["message"]["content"]
    assert json.loads(text)["label"] in LABELS["three"]


def test_stream_joins_to_the_whole_answer(server):
    n = token_of(server, "n")
    for model, form in (("things", BOXES), ("weather", FORM), ("colours", FORM)):
        more = {"seed": 4, "logit_bias": {str(n): -100} if form is BOXES else None}
        whole = ask(server, model, form, **more)[0]["message"]["content"]
        body = chat_body(model, [image_part(picture(3, width=60, height=44)), text_part("What?")], response_format=form,
                         temperature=1, max_tokens=400, ignore_eos=False, stream=True) | more
        status, text = server.request("POST", "/v1/chat/completions", body)
        assert status == 200
        events = [json.loads(line[6:])["choices"][0] for line in text.splitlines() if line.startswith("data: {")]
        parts = [event["delta"]["content"] for event in events if event["delta"].get("content")]
        assert "".join(parts) == whole
        assert len(parts) == (len(json.loads(whole)) + 1 if form is BOXES else 1)


@pytest.mark.parametrize(("model", "form", "content", "words"), [
    ("tiny", FORM, "What?", "no labels"), ("tiny", BOXES, "What?", "one picture"), ("weather", BOXES, "What?", "one picture"),
    ("places", FORM, "What?", "no labels"), ("things", BOXES, "What?", "one picture"), ("colours", BOXES, "What?", "task head"),
    ("things", BOXES, [image_part(picture(1)), image_part(picture(2))], "one picture"),
    ("things", {"type": "table"}, "What?", "table")])
def test_unsupported_response_formats_are_refused(server, model, form, content, words):
    status, text = server.request("POST", "/v1/chat/completions", chat_body(model, content, response_format=form))
    error = json.loads(text)["error"]
    assert status == 400 and error["param"] == "response_format" and words in error["message"]


def test_adapter_list_names_labels_and_boxes(server):
    cards = {card["name"]: card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
    assert cards["things"]["num_labels"] == len(THINGS) and cards["things"]["boxes"]
    assert cards["weather"]["num_labels"] == 3 and not cards["weather"]["boxes"]
    labels = lambda name: json.loads(server.request("GET", f"/v1/models/{name}")[1])["labels"]
    assert labels("things") == THINGS and labels("weather") == ["fog", "rain", "sun and wind"]


@pytest.fixture(scope="module")
def demo():
    server = ServedProcess("--model", str(DEMO / "model"), "--served-model-name", "demo", "--manifest", str(DEMO / "manifest.json"))
    yield server
    server.stop()


def test_shaped_demo_answers_equal_the_converted_text(demo):
    """Trained adapters: the expected values are their unconstrained answers, converted by this
    test."""
    tasks = json.loads((DEMO / "manifest.json").read_text())["tasks"]
    found = {}
    for sample in json.loads((DEMO / "samples.json").read_text()):
        task = tasks.get(sample["task"], {})
        if sample["adapter"] is None or sample["head"] or not (task.get("labels") or task.get("boxes")):
            continue
        path = DEMO / sample["media"]
        url = f"data:{mimetypes.guess_type(path)[0]};base64,{base64.b64encode(path.read_bytes()).decode()}"
        kind = sample["modality"] + "_url"
        content = [{"type": kind, kind: {"url": url}}, text_part(sample["question"])]
        body = chat_body(sample["task"], content, temperature=0, max_tokens=128, ignore_eos=False) | {"head": ""}
        text = demo.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        form = BOXES if "boxes" in task else FORM
        answer = json.loads(demo.post("/v1/chat/completions", body | {"response_format": form})["choices"][0]["message"]["content"])
        if form is FORM:
            assert answer == {"label": text}
        else:
            assert answer == expected_boxes(text, task["boxes"]["scale"], path)
        found[sample["task"]] = found.get(sample["task"], 0) + len(answer)
    assert {"coins", "cars", "mood"} <= set(found) and all(found.values())


def expected_boxes(text, scale, path):
    from PIL import Image
    width, height = Image.open(path).size
    boxes, label = [], None
    for part in re.findall(r"<ref>.*?</ref>|<box>.*?</box>|\[.*?\]", text):
        if part.startswith("<ref>"):
            label = part[5:-6]
            continue
        x0, y0, x1, y1 = (int(number) for number in re.findall(r"\d+", part))
        corners = [float(f"{value * side / scale:.1f}") for value, side in ((x0, width), (y0, height), (x1, width), (y1, height))]
        boxes.append({"label": label, "box": corners})
    return boxes
