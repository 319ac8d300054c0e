"""`valora serve --default-mm-loras`: the adapters of chats that contain media but name no
adapter."""

import base64
import json
import subprocess

import pytest

from programs import find_program
from serving import Server, chat_body, image_part, picture, text_part

SEEN = [image_part(picture(3)), text_part("What is this?")]


@pytest.fixture(scope="module")
def served(folders):
    server = Server({name: folders[name] for name in ("model", "one")}, "--default-mm-loras",
                    json.dumps({"image": str(folders["two"]), "video": "one"}))
    yield server
    assert server.stop() == 0


def answer(server, model, content=SEEN, **extra):
    return server.chat(model, content, **extra)["choices"][0]["message"]["content"]


def test_folder_becomes_a_separate_adapter(served, folders):
    cards = {card["id"]: card for card in json.loads(served.request("GET", "/v1/models")[1])["data"]}
    assert set(cards) == {"tiny", "one", "image"}
    assert cards["image"]["root"] == str(folders["two"]) and cards["image"]["parent"] == "tiny"


def test_default_adapter_applies_only_to_pictures(served):
    by_default = served.chat("tiny", SEEN)
    assert by_default["model"] == "tiny"
    assert by_default["choices"][0]["message"]["content"] == answer(served, "image") != answer(served, "one")
    assert answer(served, "tiny", "What is this?") != answer(served, "image", "What is this?")
    frames = ",".join(base64.b64encode(picture(seed)).decode() for seed in (1, 2))
    video = [{"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + frames}}, text_part("What is this?")]
    assert answer(served, "tiny", video) == answer(served, "one", video) != answer(served, "image", video)
    assert answer(served, "tiny", video + SEEN) not in (answer(served, name, video + SEEN) for name in ("one", "image"))


def test_default_adapter_applies_to_streams_and_later_turns(served):
    turns = [{"role": "user", "content": SEEN}, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}]
    whole, named = (served.post("/v1/chat/completions", chat_body(model, "") | {"messages": turns}) for model in ("tiny", "image"))
    assert whole["choices"] == named["choices"]
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", "", stream=True) | {"messages": turns})
    assert status == 200, text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == whole["choices"][0]["message"]["content"]
    assert {event["model"] for event in events} == {"tiny"}


def test_default_adapter_applies_to_responses(served):
    body = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": SEEN[0]["image_url"]["url"]},
                                                   {"type": "input_text", "text": "What is this?"}]}],
            "temperature": 0, "max_output_tokens": 24, "ignore_eos": True}
    texts = [served.post("/v1/responses", body | {"model": model})["output"][0]["content"][0]["text"] for model in ("tiny", "image", "one")]
    assert texts[0] == texts[1] != texts[2]


def test_invalid_default_adapter_is_refused_at_startup(folders, tmp_path):
    for value, words in (('{"audio": "x"}', "audio is not supported"), ('{"image": "nobody"}', "neither an adapter"),
                         (json.dumps({"image": str(tmp_path)}), "adapter_config.json"), ("image=x", "--default-mm-loras")):
        done = subprocess.run([find_program("valora"), "serve", "--model", folders["model"], "--port", "0", "--default-mm-loras", value],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    done = subprocess.run([find_program("valora"), "serve", "--model", folders["model"], "--port", "0", "--lora-modules",
                           f"image={folders['one']}", "--default-mm-loras", json.dumps({"image": str(folders["two"])})],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and '"image" is given twice' in done.stderr, done.stderr
