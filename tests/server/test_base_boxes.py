"""`response_format: {"type": "boxes"}` on base models: pixels of the sent picture, whatever units the family writes."""

import io
import json
import math
import re

import numpy as np
import pytest
import transformers
from PIL import Image

import checkpoints
from serving import ServedProcess, image_part, picture, text_part
from supervision_parsers import parsers

CHAT = "/v1/chat/completions"
WIDTH, HEIGHT = 150, 90
OBJECT = re.compile(r'\{"bbox_2d": \[(\d+), (\d+), (\d+), (\d+)\], "label": "((?:[^"\\]|\\.)*)"\}')


def serve(root, name):
    base = checkpoints.make_model(name)
    folder = checkpoints.save_model(base, root / "model")
    adapter = checkpoints.save_adapter(base, root / "adapter", 5, rank=4)
    return folder, ServedProcess("--model", str(folder), "--served-model-name", "tiny", "--dtype", "float32", "--threads", "1", "--max-model-len",
                                 "1024", "--lora-modules", f"adapter={adapter}")


@pytest.fixture(scope="module", params=["vl25-windows", "vl3-grouped-tied"])
def json_family(request, tmp_path_factory):
    folder, server = serve(tmp_path_factory.mktemp(request.param), request.param)
    yield request.param, folder, server
    assert server.stop() == 0


def body(model="tiny", seed=3, **extra):
    content = [image_part(picture(seed, WIDTH, HEIGHT)), text_part("Find every car.")]
    return {"model": model, "messages": [{"role": "user", "content": content}], "response_format": {"type": "boxes"}, "max_tokens": 400,
            "temperature": 1.0, "seed": seed, "logprobs": True} | extra


def ask(server, **extra):
    choice = server.post(CHAT, body(**extra))["choices"][0]
    written = b"".join(bytes(token["bytes"] or []) for token in choice["logprobs"]["content"]).decode(errors="replace")
    return json.loads(choice["message"]["content"]), written


def units(name, folder):
    """The sides of the picture in the units that the family writes."""
    if name != "vl25-windows":
        return 1000, 1000
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    pixels = processor(images=Image.open(io.BytesIO(picture(3, WIDTH, HEIGHT))), return_tensors="pt")
    _, rows, columns = pixels["image_grid_thw"][0].tolist()
    return columns * processor.patch_size, rows * processor.patch_size


def expected(written, sides):
    boxes = []
    for *corners, label in OBJECT.findall(written):
        x0, y0, x1, y1 = (min(int(corner), side) for corner, side in zip(corners, sides * 2))
        scaled = [(x * WIDTH / sides[0], y * HEIGHT / sides[1]) for x, y in ((min(x0, x1), min(y0, y1)), (max(x0, x1), max(y0, y1)))]
        if x0 != x1 and y0 != y1:
            boxes.append({"label": json.loads(f'"{label}"'), "box": [*scaled[0], *scaled[1]]})
    return boxes


def same(boxes, wanted):
    assert [box["label"] for box in boxes] == [box["label"] for box in wanted]
    for box, want in zip(boxes, wanted):
        assert box["box"] == pytest.approx(want["box"], abs=0.051)
        assert 0 <= box["box"][0] < box["box"][2] <= WIDTH and 0 <= box["box"][1] < box["box"][3] <= HEIGHT


def test_boxes_of_base_and_adapter_are_pixels_of_the_sent_picture(json_family):
    name, folder, server = json_family
    sides, found, clipped = units(name, folder), 0, 0
    (comma,) = server.post("/tokenize", {"model": "tiny", "prompt": ","})["tokens"]  # ends numbers early, within the picture
    for model in ("tiny", "adapter"):
        for seed in range(8):
            boxes, written = ask(server, model=model, seed=seed, messages=body()["messages"], logit_bias={str(comma): 3},
                                 response_format={"type": "boxes", "labels": ["car", 'a "red" bus']})
            same(boxes, expected(written, sides))
            found += len(boxes)
            clipped += sum(box.get("clipped", False) for box in boxes)
            assert {box["label"] for box in boxes} <= {"car", 'a "red" bus'}
    assert found > 5, "the comparison saw boxes"
    assert (clipped > 0) == (name == "vl25-windows"), "thousandths are bounded by the grammar, pixels are not"


def test_any_label_may_be_written_without_a_list(json_family):
    name, folder, server = json_family
    for seed in range(4):
        boxes, written = ask(server, seed=seed, messages=body()["messages"])
        same(boxes, expected(written, units(name, folder)))


def test_streams_send_the_same_boxes(json_family):
    _, _, server = json_family
    options = {"response_format": {"type": "boxes", "labels": ["car"]}, "temperature": 0}
    whole, _ = ask(server, **options)
    status, text = server.request("POST", CHAT, body(stream=True, **options))
    assert status == 200
    parts = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert json.loads("".join(part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"])) == whole


def test_bad_lists_of_labels_are_refused(json_family):
    _, _, server = json_family
    for labels in ([], "car", ["car", ""], [1], ["x"] * 1001):
        status, text = server.request("POST", CHAT, body(response_format={"type": "boxes", "labels": labels}))
        assert status == 400 and '"param":"response_format"' in text, labels


@pytest.mark.parametrize("name", ["vl-small-patch", "internvl-qwen3", "llava-default"])
def test_other_families(name, tmp_path):
    _, server = serve(tmp_path, name)
    try:
        status, text = server.request("POST", CHAT, body(temperature=0, max_tokens=24))
        if name == "llava-default":
            assert status == 400 and "how this model writes boxes" in text
        else:  # a random model writes no marks of tokens
            assert status == 200 and json.loads(json.loads(text)["choices"][0]["message"]["content"]) == []
            status, text = server.request("POST", CHAT, body(response_format={"type": "boxes", "labels": ["car"]}))
            assert status == 400 and "held to a list" in text
    finally:
        assert server.stop() == 0


@pytest.fixture(scope="module")
def found(json_family):
    """Options of a request whose answer has boxes."""
    _, _, server = json_family
    (comma,) = server.post("/tokenize", {"model": "tiny", "prompt": ","})["tokens"]
    for seed in range(20):
        options = {"seed": seed, "messages": body()["messages"], "logit_bias": {str(comma): 3}}
        if boxes_in(server, options, "corners"):
            return options
    raise AssertionError("no answer has boxes")


def boxes_in(server, options, form, **more):
    form = {"type": "boxes", "format": form, "labels": ["car", "a person"]} | more
    return json.loads(server.post(CHAT, body(**options, response_format=form))["choices"][0]["message"]["content"])


def test_other_forms_say_the_same(json_family, found):
    _, folder, server = json_family
    corners = boxes_in(server, found, "corners")
    for plain, coco, yolo in zip(corners, boxes_in(server, found, "coco"), boxes_in(server, found, "yolo"), strict=True):
        x0, y0, x1, y1 = plain["box"]
        assert coco["bbox"] == pytest.approx([x0, y0, x1 - x0, y1 - y0], abs=0.11)
        shares = [(x0 + x1) / 2 / WIDTH, (y0 + y1) / 2 / HEIGHT, (x1 - x0) / WIDTH, (y1 - y0) / HEIGHT]
        assert yolo["xywhn"] == pytest.approx(shares, abs=0.002)
    around = boxes_in(server, found, "corners", sizes=True)
    assert around["boxes"] == corners and around["size"] == [WIDTH, HEIGHT]
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    pixels = processor(images=Image.open(io.BytesIO(picture(3, WIDTH, HEIGHT))), return_tensors="pt")
    _, rows, columns = pixels["image_grid_thw"][0].tolist()
    assert around["seen"] == [columns * processor.patch_size, rows * processor.patch_size]


def test_supervision_reads_the_boxes(json_family, found):
    _, _, server = json_family
    text = json.dumps(boxes_in(server, found, "bbox_2d"))
    boxes, _, labels = parsers().from_qwen_2_5_vl(text, (WIDTH, HEIGHT), (WIDTH, HEIGHT))
    corners = boxes_in(server, found, "corners")
    assert boxes == pytest.approx(np.array([box["box"] for box in corners])) and labels.tolist() == [box["label"] for box in corners]


def probabilities(tokens):
    """(of the label, mean of the corners) for each object; a token counts for the first of them that it has a part of."""
    objects, quotes = [], 0
    for token in tokens:
        counted = False
        for char in bytes(token["bytes"] or []).decode(errors="replace"):
            if char == "{":
                objects.append(([], []))
                quotes = 0
            elif char == '"':
                quotes += 1
            elif objects and not counted and (quotes == 5 or quotes % 2 == 0 and char.isdigit()):
                objects[-1][quotes != 5].append(token["logprob"])
                counted = True
    return [(math.exp(sum(label)), math.exp(sum(box) / max(len(box), 1))) for label, box in objects]


def test_confidences_are_those_of_the_tokens(json_family, found):
    _, _, server = json_family
    form = {"type": "boxes", "confidence": True, "labels": ["car", "a person"]}
    choice = server.post(CHAT, body(**found, response_format=form))["choices"][0]
    tokens = choice["logprobs"]["content"]
    written = b"".join(bytes(token["bytes"] or []) for token in tokens).decode(errors="replace")
    wanted = [both for both, (x0, y0, x1, y1, _) in zip(probabilities(tokens), OBJECT.findall(written)) if x0 != x1 and y0 != y1]
    boxes = json.loads(choice["message"]["content"])
    assert boxes and len(boxes) == len(wanted)
    for box, (label, corners) in zip(boxes, wanted):
        assert box["label_confidence"] == pytest.approx(label, rel=2e-3)
        assert box["confidence"] == pytest.approx(corners, rel=2e-3)


def test_unknown_forms_are_refused(json_family):
    _, _, server = json_family
    for wrong in ({"format": "x"}, {"confidence": 1}, {"sizes": "yes"}):
        status, text = server.request("POST", CHAT, body(response_format={"type": "boxes"} | wrong))
        assert status == 400 and '"param":"response_format"' in text, wrong
