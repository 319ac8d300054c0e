"""The commands with names: the server with a model and adapters, and `valora generate`."""

import json

import pytest

from programs import REPOSITORY
from serving import ServedProcess, chat_body

ADAPTER = REPOSITORY / "demo/adapters/adapter-1"
OPTIONS = ("--threads", "1", "--pool-memory", "64M", "--dtype", "float32")


def generated(home, *arguments):
    done = home.run("generate", "--prompt", "Which digit?", "--json", "--max-tokens", "8", *OPTIONS, *arguments)
    assert done.returncode == 0, done.err
    return json.loads(done.out)["token_ids"]


def test_generate_answers_as_with_folders(hub, home):
    by_name = generated(home, "--model", "own/demo@v1", "--adapter", "own/cats:0.5")
    folders = generated(home, "--model", REPOSITORY / "demo/model", "--adapter", f"{ADAPTER}:0.5")
    assert by_name == folders


@pytest.fixture
def served(hub, home):
    server = ServedProcess("own/demo", "--revision", "v1", "--lora-modules", "cats=own/cats", '{"name": "again", "path": "own/cats"}',
                           "--allow-runtime-lora-updating", *OPTIONS, env=home.environment)
    yield server
    assert server.stop() == 0


def test_server_has_the_name_and_loads_none_by_http(hub, home, served):
    cards = {card["id"]: card for card in json.loads(served.request("GET", "/v1/models")[1])["data"]}
    assert set(cards) == {"own/demo", "cats", "again"} and cards["cats"]["parent"] == "own/demo"
    assert cards["cats"]["root"].endswith("models--own--cats/snapshots/" + "a" * 40)
    for model in cards:
        assert served.post("/v1/chat/completions", chat_body(model, "Hello", max_tokens=4))["model"] == model
    hub.reset()
    status, text = served.request("POST", "/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "own/cats"})
    assert status == 404 and "does not exist" in text and hub.requests == []
