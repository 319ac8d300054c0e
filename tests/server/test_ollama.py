"""Ollama's API, with its own client: the answers are those of the OpenAI API."""

import base64
import json

import ollama
import pytest

from programs import REPOSITORY
from serving import ServedProcess, image_part, text_part

DEMO = REPOSITORY / "demo"
PICTURE = DEMO / "samples" / "digits-1.png"
TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {
    "type": "object", "properties": {"where": {"type": "string", "enum": ["left", "right"]}}, "required": ["where"]}}}


def serve(*options):
    return ServedProcess("--model", str(DEMO / "model"), "--served-model-name", "demo", "--manifest", str(DEMO / "manifest.json"),
                         "--dtype", "float32", "--threads", "1", *options)


@pytest.fixture(scope="module")
def server():
    made = serve("--ollama-api")
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


def chat(server, model, *parts, **more):
    answer = server.post("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": list(parts)}]} | more)
    return answer["choices"][0]["message"]


def test_models_are_listed_and_described(client):
    models = {model.model: model for model in client.list().models}
    assert {"demo", "digits"} <= set(models) and models["digits"].size > 0 and len(models["digits"].digest) > 20
    shown = client.show("digits:latest")
    assert "vision" in shown.capabilities
    assert [value for key, value in shown.modelinfo.items() if key.endswith(".context_length")] == [4096]


def test_chats_answer_as_the_openai_api(server, client):
    expected = chat(server, "digits", image_part(PICTURE.read_bytes()), text_part("Which digit is this?"))["content"]
    messages = [{"role": "user", "content": "Which digit is this?", "images": [str(PICTURE)]}]
    answer = client.chat(model="digits:latest", messages=messages)
    assert answer.message.content == expected and answer.done and answer.done_reason == "stop"
    assert answer.prompt_eval_count > 20 and answer.total_duration >= answer.prompt_eval_duration > 0
    parts = list(client.chat(model="demo", messages=[{"role": "user", "content": "Hello"}], stream=True))
    assert "".join(part.message.content for part in parts) == chat(server, "demo", text_part("Hello"))["content"]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True] and len(parts) > 2


def test_generate_answers_a_prompt(server, client):
    image = base64.b64encode(PICTURE.read_bytes()).decode()
    answer = client.generate(model="digits", prompt="Which digit is this?", images=[image])
    assert answer.response == chat(server, "digits", image_part(PICTURE.read_bytes()), text_part("Which digit is this?"))["content"]
    raw = client.generate(model="demo", prompt="Hello", raw=True, options={"num_predict": 5, "temperature": 0})
    completion = server.post("/v1/completions", {"model": "demo", "prompt": "Hello", "max_tokens": 5, "temperature": 0})
    assert raw.response == completion["choices"][0]["text"] and raw.done_reason == "length"
    assert client.generate(model="demo").done_reason == "load"


def test_options_and_formats_reach_the_model(client):
    ask = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "options": {"temperature": 0, "num_predict": 40}}
    number = {"type": "integer", "maximum": 3, "minimum": 0}
    schema = {"type": "object", "properties": {"a": number}, "required": ["a"], "additionalProperties": False}
    assert json.loads(client.chat(**ask, format=schema).message.content)["a"] in range(4)
    assert client.chat(**ask | {"options": {"num_predict": 2}}).eval_count == 2
    stopped = client.chat(**ask | {"options": {"stop": ["!"]}}).message.content
    assert "!" not in stopped and stopped
    scored = client.chat(**ask, logprobs=True, top_logprobs=2)
    assert len(scored.logprobs) == scored.eval_count and len(scored.logprobs[0].top_logprobs) == 2


def test_results_of_tools_are_taken(client):
    call = {"function": {"name": "look", "arguments": {"where": "left"}}}
    messages = [{"role": "user", "content": "Look left."}, {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_name": "look", "content": "a wall"}]
    answer = client.chat(model="demo", messages=messages, tools=[TOOL], options={"num_predict": 8})
    question = client.chat(model="demo", messages=messages[:1], options={"num_predict": 1})
    assert answer.done and answer.prompt_eval_count > question.prompt_eval_count


def test_embeddings_are_those_of_the_openai_api(server, client):
    expected = [item["embedding"] for item in server.post("/v1/embeddings", {"model": "demo", "input": ["a", "b"]})["data"]]
    answer = client.embed(model="demo", input=["a", "b"])
    assert answer.embeddings[0] == pytest.approx(expected[0], abs=1e-5) and answer.embeddings[1] == pytest.approx(expected[1], abs=1e-5)
    assert client.embeddings(model="demo", prompt="a").embedding == pytest.approx(expected[0], abs=1e-5)


@pytest.mark.parametrize("body, part", [
    ({"model": "nobody", "messages": [{"role": "user", "content": "x"}]}, "does not exist"),
    ({"messages": []}, '"model"'),
    ({"model": "demo", "messages": [{"role": "user", "content": "x", "images": ["@@"]}]}, "messages[0]"),
    ({"model": "demo", "messages": [{"role": "user", "content": "x"}], "options": {"mirostat": 1}}, "mirostat"),
    ({"model": "demo", "messages": [{"role": "user", "content": "x"}], "options": {"temperature": -1}}, "temperature"),
    ({"model": "demo", "messages": [{"role": "user", "content": "x"}], "format": 5}, '"format"'),
    ({"model": "demo", "messages": "x"}, '"messages"'),
    ({"model": "demo", "messages": [5]}, "messages[0]"),
])
def test_errors_are_texts(server, body, part):
    status, text = server.request("POST", "/api/chat", body)
    assert status in (400, 404) and part in json.loads(text)["error"], text


@pytest.mark.parametrize("field, value", [("suffix", "a"), ("template", "a"), ("context", [1])])
def test_fields_that_would_change_the_answer_are_refused(server, field, value):
    status, text = server.request("POST", "/api/generate", {"model": "demo", "prompt": "x", field: value})
    assert status == 400 and field in json.loads(text)["error"]


def test_off_unless_asked_for_and_behind_the_key():
    plain = serve()
    assert plain.request("GET", "/api/tags")[0] == 404
    assert plain.stop() == 0
    closed = serve("--ollama-api", "--api-key", "secret")
    assert closed.request("GET", "/api/tags")[0] == 401
    assert closed.request("GET", "/api/tags", headers={"Authorization": "Bearer secret"})[0] == 200
    assert closed.stop() == 0
