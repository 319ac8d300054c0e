"""A published checkpoint, SmolLM2-135M-Instruct, over HTTP: transformers' tokens, tool calls, and answers with a schema."""

import concurrent.futures
import json

import jsonschema
import pytest

import newest
from serving import ServedProcess
from wide import EVERYTHING, sample

CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "system", "content": "You answer in one short sentence."}, {"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello Ada!"},
     {"role": "user", "content": "What is my name?"}],
    [{"role": "user", "content": "Write a Python function that adds two numbers.\n\n```python\n"}],
    [{"role": "user", "content": "Übersetze ins Englische: „Guten Morgen, Zoë“ 🌞 日本語"}],
]
PROMPTS = ["The quick brown fox", "def fibonacci(n):\n    ", "1, 2, 3, 4,"]
TOKENS = 40

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
           "required": ["city", "unit"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather of a city.", "parameters": WEATHER}}]


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
SCHEMAS = {
    "person": schema(name=TEXT, age=WHOLE, married={"type": "boolean"}),
    "place": schema(city=TEXT, country=TEXT, inhabitants=WHOLE, position=schema(latitude=NUMBER, longitude=NUMBER)),
    "day": schema(title=TEXT, date={"type": "string", "format": "date"}, hours={"type": "array", "items": WHOLE, "maxItems": 4}),
    "opinion": schema(sentiment={"enum": ["good", "bad", "mixed"]}, score={"type": "number", "minimum": 0, "maximum": 1},
                      words={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3}),
    "item": schema(name=TEXT, price=NUMBER, currency={"enum": ["EUR", "USD"]}, note={"anyOf": [TEXT, {"type": "null"}]}),
}
SUBJECTS = {
    "person": ["Ada Lovelace", "a baker in Rome", "Alan Turing", "a nurse", "your neighbour", "Marie Curie", "a pilot", "an old king",
               "a student from Kyoto", "Isaac Newton", "a farmer", "Mozart"],
    "place": ["Paris", "Tokyo", "a village in Peru", "Cairo", "Berlin", "Nairobi", "Oslo", "Sydney", "Lima", "Toronto", "Mumbai", "Rome"],
    "day": ["a birthday", "New Year", "a trip to the lake", "an exam", "a wedding", "a concert", "the first day of school", "a race",
            "a meeting", "market day", "a moon landing", "a holiday"],
    "opinion": ["I love this phone!", "The soup was cold.", "Great film, bad ending.", "Never again.", "It works.", "Slow but cheap.",
                "The best day ever", "Too loud", "Nice people", "Boring", "A wonderful book", "It broke at once."],
    "item": ["a red bicycle", "a loaf of bread", "a laptop", "an umbrella", "a wooden chair", "coffee", "a ticket", "a pair of shoes",
             "a clock", "a lamp", "a pencil", "a guitar"],
}


@pytest.fixture(scope="module")
def served(smollm2):
    servers = {}

    def get(dtype):
        if dtype not in servers:
            servers[dtype] = ServedProcess("--model", smollm2, "--served-model-name", "smollm2", "--dtype", dtype,
                                           "--max-model-len", "1024", "--pool-memory", "512M")
        return servers[dtype]
    yield get
    for server in servers.values():
        server.stop()


def answers_of(smollm2, requests, file, *adapter):
    file.write_text(json.dumps(requests))
    return json.loads(newest.run("parity/smollm2_answers.py", smollm2, file, *adapter))


def test_chats_and_completions_equal_transformers(smollm2, served, tmp_path):
    requests = [{"messages": messages, "max_tokens": TOKENS} for messages in sample(CHATS, 2)] + \
               [{"prompt": prompt, "max_tokens": TOKENS} for prompt in sample(PROMPTS, 2)]
    expected = answers_of(smollm2, requests, tmp_path / "requests.json")
    server = served("float32")
    ends = {server.post("/tokenize", {"model": "smollm2", "prompt": "<|im_end|>"})["tokens"][0]}
    for request, answer in zip(requests, expected, strict=True):
        path = "/v1/chat/completions" if "messages" in request else "/v1/completions"
        got = server.post(path, request | {"model": "smollm2", "temperature": 0, "return_token_ids": True})
        choice = got["choices"][0]
        assert (got.get("prompt_token_ids") or choice["prompt_token_ids"]) == answer["prompt_token_ids"]
        assert [t for t in choice["token_ids"] if t not in ends] == answer["token_ids"]
        assert (choice["finish_reason"] == "length") == (len(answer["token_ids"]) == TOKENS)


@pytest.mark.skipif(not EVERYTHING, reason="trains for a minute: make conformance runs it")
def test_trained_adapter_equals_peft(smollm2, tmp_path):
    adapter = tmp_path / "adapter"
    losses = [float(loss) for loss in newest.run("parity/smollm2_adapter.py", smollm2, adapter).split()]
    assert losses[-1] < losses[0]
    request = {"prompt": "Return the median of", "max_tokens": 16}
    expected, = answers_of(smollm2, [request], tmp_path / "requests.json", adapter)
    for mode in ["unmerged", "merged"]:
        server = ServedProcess("--model", smollm2, "--served-model-name", "smollm2", "--dtype", "float32", "--max-model-len", "512",
                               "--pool-memory", "256M", "--mode", mode, "--lora-modules", f"trained={adapter}")
        try:
            asked = request | {"temperature": 0, "return_token_ids": True}
            tokens = {model: server.post("/v1/completions", asked | {"model": model})["choices"][0]["token_ids"]
                      for model in ["trained", "smollm2"]}
        finally:
            server.stop()
        assert tokens["trained"][:len(expected["token_ids"])] == expected["token_ids"]
        assert tokens["trained"] != tokens["smollm2"]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}], ids=["required", "named"])
def test_model_calls_a_tool(served, choice):
    body = {"model": "smollm2", "messages": [{"role": "user", "content": "What is the weather in Paris, in celsius?"}],
            "temperature": 0, "max_tokens": 100, "tools": TOOLS, "tool_choice": choice}
    message = served("auto").post("/v1/chat/completions", body)["choices"][0]["message"]
    call = message["tool_calls"][0]["function"]
    assert call["name"] == "weather"
    arguments = json.loads(call["arguments"])
    jsonschema.validate(arguments, WEATHER)
    assert arguments["city"].startswith("Paris"), arguments


def test_answers_under_a_schema_end(served):
    """Unlimited white space or numbers would fill max_tokens."""
    server = served("auto")

    def ask(kind, subject):
        body = {"model": "smollm2", "temperature": 0, "max_tokens": 200,
                "messages": [{"role": "user", "content": f"Describe as JSON ({', '.join(SCHEMAS[kind]['properties'])}): {subject}"}],
                "response_format": {"type": "json_schema", "json_schema": {"name": kind, "schema": SCHEMAS[kind]}}}
        status, text = server.request("POST", "/v1/chat/completions", body, timeout=300)
        assert status == 200, text
        answer = json.loads(text)["choices"][0]
        return kind, answer["finish_reason"], answer["message"]["content"]
    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(lambda pair: ask(*pair), [(kind, s) for kind, subjects in SUBJECTS.items() for s in subjects]))
    assert len(answers) == 60
    for kind, reason, content in answers:
        if reason != "length":
            jsonschema.validate(json.loads(content), SCHEMAS[kind])
    cut = [answer for answer in answers if answer[1] == "length"]
    assert len(cut) <= 2, cut
