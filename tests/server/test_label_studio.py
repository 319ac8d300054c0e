"""The backend for Label Studio (integrations/label-studio), started as its page says, in front of the demo and of a base model.

Requests are Label Studio's; percents and labels are compared with what the server says when it is asked directly.
"""

import http.server
import json
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

import checkpoints
from serving import ServedProcess, data_url, image_part, picture, text_part

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "demo"
COINS = """<View>
  <Header value="Coins and cards"/>
  <Image name="photo" value="$picture" zoom="true"/>
  <RectangleLabels name="things" toName="photo" valora_model="coins">
    <Label value="Coin" background="#FFA39E" predicted_values="coin"/>
    <Label value="Playing card" alias="playing-card" predicted_values="card, paper"/>
  </RectangleLabels>
</View>"""
SURFACES = """<View>
  <Image name="img" value="$image"/>
  <Choices name="defect" toName="img" choice="single" valora_model="defects">
    <Choice value="clean"/><Choice value="scratch"/><Choice value="crack"/><Choice value="hole"/><Choice value="stain"/>
  </Choices>
  <Choices name="shade" toName="img" valora_model="valora-demo" valora_prompt="Is it light?">
    <Choice value="yes"/><Choice value="no"/>
  </Choices>
  <Choices name="of-a-region" toName="img" perRegion="true"><Choice value="worn"/></Choices>
</View>"""
CARS = """<View><Image name="road" value="$image"/>
  <RectangleLabels name="where" toName="road"><Label value="car"/></RectangleLabels></View>"""


@contextmanager
def backend(server, *options, **environment):
    command = [sys.executable, str(REPOSITORY / "integrations/label-studio/backend.py"), "--valora", f"{server.url}/v1", "--port", "0"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().split()[-1]

        def call(path, body=None):
            request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        yield call
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def demo():
    server = ServedProcess("--model", str(DEMO / "model"), "--served-model-name", "valora-demo", "--manifest", str(DEMO / "manifest.json"),
                           "--dtype", "float32", "--threads", "1")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def call(demo):
    with backend(demo, "--model", "cars") as call:
        yield call


def sample(name):
    return (DEMO / "samples" / f"{name}.png").read_bytes()


def body(config, *pictures, key="image"):
    """As Label Studio's connector sends it."""
    tasks = [{"id": i + 1, "data": {key: url}, "meta": {}, "predictions": [], "annotations": []} for i, url in enumerate(pictures)]
    return {"tasks": tasks, "model_version": "coins", "project": "4.1795900000", "label_config": config,
            "params": {"login": None, "password": None, "context": None}}


def setup(config):
    return {"project": "4.1795900000", "schema": config, "hostname": "http://localhost:8080", "access_token": "abc", "extra_params": None}


def asked_directly(server, model, data, question, form):
    answer = server.chat(model, [image_part(data), text_part(question)], response_format=form, max_tokens=400, ignore_eos=False)
    return json.loads(answer["choices"][0]["message"]["content"])


def test_it_is_up_and_names_its_version(call):
    assert call("/health") == (200, {"status": "UP", "model_class": "valora"})
    assert call("/setup", setup(COINS)) == (200, {"model_version": "coins"})
    assert call("/setup", setup(SURFACES)) == (200, {"model_version": "defects+valora-demo"})
    assert call("/webhook", {"action": "ANNOTATION_CREATED", "project": {"id": 4}})[0] == 201
    assert call("/nothing", {})[0] == 404


def test_rectangles_are_percents_of_the_boxes(call, demo):
    pictures = [sample(f"coins-{i}") for i in (1, 2, 3)]
    status, answer = call("/predict", body(COINS, *map(data_url, pictures), key="picture"))
    assert status == 200 and len(answer["results"]) == 3 and answer["model_version"] == "coins"
    kinds = set()
    for data, prediction in zip(pictures, answer["results"]):
        direct = asked_directly(demo, "coins", data, "Find all coins and cards.", {"type": "boxes", "confidence": True, "sizes": True})
        width, height = direct["size"]
        assert len(prediction["result"]) == len(direct["boxes"]) > 0 and prediction["model_version"] == "coins"
        for region, box in zip(prediction["result"], direct["boxes"]):
            assert (region["from_name"], region["to_name"], region["type"]) == ("things", "photo", "rectanglelabels")
            assert (region["original_width"], region["original_height"], region["image_rotation"]) == (width, height, 0)
            value = region["value"]
            x0, y0, x1, y1 = box["box"]
            assert [value[k] for k in ("x", "y", "width", "height", "rotation")] == pytest.approx(
                [100 * x0 / width, 100 * y0 / height, 100 * (x1 - x0) / width, 100 * (y1 - y0) / height, 0])
            assert value["rectanglelabels"] == [{"coin": "Coin", "card": "playing-card"}[box["label"]]]
            assert region["score"] == pytest.approx(box["confidence"] * box["label_confidence"])
            kinds.add(box["label"])
        assert prediction["score"] == pytest.approx(sum(r["score"] for r in prediction["result"]) / len(direct["boxes"]))
    assert kinds == {"coin", "card"}
    ids = [region["id"] for prediction in answer["results"] for region in prediction["result"]]
    assert len(ids) == len(set(ids))


def test_labels_that_the_project_lacks_are_left_out(call):
    config = COINS.replace('<Label value="Playing card" alias="playing-card" predicted_values="card, paper"/>', "")
    _, answer = call("/predict", body(config, data_url(sample("coins-1")), key="picture"))
    assert {label for region in answer["results"][0]["result"] for label in region["value"]["rectanglelabels"]} == {"Coin"}


def test_choices_of_a_head_and_of_a_base_model(call, demo):
    data = sample("defects-1")
    status, answer = call("/predict", body(SURFACES, data_url(data)))
    assert status == 200
    (head, free) = answer["results"][0]["result"]
    direct = asked_directly(demo, "defects", data, "What is wrong with the surface?", {"type": "labels", "confidence": True})
    assert (head["from_name"], head["to_name"], head["type"]) == ("defect", "img", "choices")
    assert head["value"] == {"choices": [direct["label"]]} and head["score"] == pytest.approx(direct["confidence"])
    assert free["from_name"] == "shade" and free["value"]["choices"][0] in ("yes", "no") and 0 < free["score"] <= 1


def test_boxes_without_labels_have_the_only_label(call, demo):
    data = sample("cars-1")
    _, answer = call("/predict", body(CARS, data_url(data)))
    direct = asked_directly(demo, "cars", data, "Find the car.", {"type": "boxes"})
    assert [region["value"]["rectanglelabels"] for region in answer["results"][0]["result"]] == [["car"]] * len(direct) != []


def test_uploaded_pictures_are_fetched_with_the_token(demo):
    seen = []

    class Studio(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(sample("cars-1"))

        def log_message(self, *_):
            pass

    studios = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Studio) for _ in range(2)]
    own, other = (f"http://127.0.0.1:{studio.server_port}" for studio in studios)
    for studio in studios:
        threading.Thread(target=studio.serve_forever, daemon=True).start()
    try:
        with backend(demo, "--model", "cars", "--label-studio-url", own, "--in-flight", "1", LABEL_STUDIO_API_KEY="secret") as call:
            urls = ["/data/upload/4/a.png", f"{own}/data/upload/4/b.png", f"{other}/c.png"]
            _, answer = call("/predict", body(CARS, *urls))
        assert [len(prediction["result"]) for prediction in answer["results"]] == [1, 1, 1]
        assert seen == [("/data/upload/4/a.png", "Token secret"), ("/data/upload/4/b.png", "Token secret"), ("/c.png", None)]
    finally:
        for studio in studios:
            studio.shutdown()
            studio.server_close()


def test_mistakes_are_named(call, demo):
    def error(path, sent, status):
        got, answer = call(path, sent)
        assert got == status, answer
        return answer["error"]

    assert "no RectangleLabels and no Choices" in error("/setup", setup("<View><Image name='a' value='$a'/></View>"), 400)
    assert "is no XML" in error("/setup", setup("<View>"), 400)
    assert '"where" is about "sky", which is no Image tag' in error("/setup", setup(CARS.replace('toName="road"', 'toName="sky"')), 400)
    message = error("/setup", setup(SURFACES.replace('"defects"', '"digits"')), 502)
    assert '"defect" and the model "digits" have no label in common' in message
    assert "none-such" in error("/setup", setup(CARS.replace("<RectangleLabels", '<RectangleLabels valora_model="none-such"')), 502)
    assert 'task 1 has no "image"' in error("/predict", body(CARS, "x", key="other"), 502)
    assert "--label-studio-url" in error("/predict", body(CARS, "/data/upload/1.png"), 502)
    broken = data_url(b"no picture")
    assert "image" in error("/predict", body(CARS, broken), 502)
    status, answer = call("/predict", body(CARS, broken, data_url(sample("cars-1"))))
    failed, good = answer["results"]
    assert status == 200 and list(failed) == ["error"] and len(good["result"]) == 1  # Label Studio keeps no prediction without a result


def test_a_base_model_gets_the_labels_of_the_project(tmp_path):
    base = checkpoints.make_model("vl3-grouped-tied")
    server = ServedProcess("--model", str(checkpoints.save_model(base, tmp_path / "model")), "--served-model-name", "tiny", "--dtype", "float32",
                           "--threads", "1", "--max-model-len", "1024")
    data = picture(1, 150, 90)
    config = CARS.replace('<Label value="car"/>', '<Label value="car"/><Label value="a person" alias="person"/>')
    try:
        with backend(server, "--max-tokens", "300") as call:
            assert call("/setup", setup(config)) == (200, {"model_version": "tiny"})
            status, answer = call("/predict", body(config, data_url(data)))
        assert status == 200
        form = {"type": "boxes", "labels": ["car", "person"]}
        direct = server.chat("tiny", [image_part(data), text_part("Find every car, person.")], response_format=form, max_tokens=300,
                             ignore_eos=False)
        boxes = json.loads(direct["choices"][0]["message"]["content"])
        assert [region["value"]["rectanglelabels"] for region in answer["results"][0]["result"]] == [[box["label"]] for box in boxes] != []
    finally:
        assert server.stop() == 0
