"""/openapi.json describes what the server answers: no field of an answer is missing in it, and no field in it is never
answered."""

import json

import pytest

from serving import Server, as_reranker, chat_body, image_part, picture, text_part

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None)}
JSON, EVENTS = "application/json", "text/event-stream"
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}  # a random model writes such a call to its end
TOOL = {"type": "function", "function": {"name": "weather", "parameters": NOTHING}}
CALL = [{"type": "function", "name": "weather", "parameters": NOTHING}]
# Fields that need a state which these requests do not bring about.
RARE = {("/v1/stats", JSON, "steps.last"): "none", ("/v1/responses", EVENTS, "code"): "an error", ("/v1/responses", EVENTS, "message"): "an error",
        ("/v1/responses", EVENTS, "param"): "an error",
        ("/props", JSON, "chat_template"): "a chat template",
        ("/v1/models/{model}", JSON, "num_labels"): "labels of a task", ("/v1/models/{model}", JSON, "labels"): "labels of a task"}
ERRORS = ["errors.object", "errors.data", "errors.data.code", "errors.data.message", "errors.data.param", "errors.data.line"]
RARE |= {(path, JSON, place): "a batch with faults" for path in ("/v1/batches", "/v1/batches/{batch_id}/cancel") for place in ERRORS}
STREAMS = ["/v1/streams", "/v1/streams/{stream_id}", "/v1/streams/{stream_id}/pause", "/v1/streams/{stream_id}/resume"]
RARE |= {(path, JSON, place + field): "webhooks and waiting sources: test_streams.py" for path in STREAMS for place in ("", "data.")
         for field in ("webhook", "reason")}
RARE |= {(path, JSON, place + "mqtt_topic"): "a broker: test_mqtt.py" for path in STREAMS for place in ("", "data.")}
RARE |= {("/v1/streams", JSON, "mqtt" + field): "a broker: test_mqtt.py"
         for field in ("", ".connected", ".reason", ".connections", ".sent", ".waiting", ".dropped")}
RARE |= {("/v1/streams/{stream_id}/events", JSON, place): "faults: test_streams.py" for place in ("data.reason", "data.error")}
# Only models that think send these; test_thoughts.py asks them.
THOUGHTS = [f"{part}.{field}" for part in ("choices.message", "choices.delta") for field in ("reasoning", "reasoning_content")]
THOUGHTS += ["usage.completion_tokens_details", "usage.completion_tokens_details.reasoning_tokens", "output.summary"]


def fits(value, schema):
    names = schema.get("type", list(TYPES))
    names = [names] if isinstance(names, str) else names
    return "boolean" in names if isinstance(value, bool) else any(isinstance(value, TYPES[name]) for name in names)


def compare(value, schema, place, seen, faults):
    """Adds the schema's fields that the value has to `seen`, and what does not fit to `faults`."""
    seen.add(place)
    if not fits(value, schema):
        faults.append(f"{place}: {value!r:.60} is not {schema['type']}")
    elif isinstance(value, list):
        for item in value:
            compare(item, schema.get("items", {}), place, seen, faults)
    elif isinstance(value, dict) and "properties" in schema:
        faults += [f"{place}: {name} is missing" for name in schema["required"] if name not in value]
        for name, part in value.items():
            inner = f"{place}.{name}".lstrip(".")
            if name in schema["properties"]:
                compare(part, schema["properties"][name], inner, seen, faults)
            else:
                faults.append(f"{inner} is not documented")


def places(schema, place=""):
    yield place
    for name, part in schema.get("properties", {}).items():
        yield from places(part, f"{place}.{name}".lstrip("."))
    if "properties" in schema.get("items", {}):
        yield from list(places(schema["items"], place))[1:]


@pytest.fixture(scope="module")
def server(folders, tmp_path_factory):
    applications = tmp_path_factory.mktemp("openapi") / "applications.yaml"
    applications.write_text("applications:\n  - {name: mine, models: [two], ttft: 60, tpot: 60, e2e: 60, rate: 100, max_waiting: 50}\n")
    reranker = as_reranker(folders["model"], tmp_path_factory.mktemp("reranker") / "model")
    made = Server(folders | {"model": reranker}, "--applications", applications, "--enable-tokenizer-info-endpoint",
                  "--batches-dir", applications.parent / "batches", "--streams-dir", applications.parent / "streams")
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def document(server):
    return json.loads(server.request("GET", "/openapi.json")[1])


def events(text):
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(event) for event in data if event != "[DONE]"]


def chats(**extra):
    yield chat_body("two", [image_part(picture(1)), text_part("Hi")], max_tokens=3, logprobs=True, top_logprobs=2, return_token_ids=True, **extra)
    forced = dict(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "weather"}})
    yield chat_body("tiny", "Hi", max_tokens=300, ignore_eos=False, **forced, **extra)


def bodies(stream):
    extra = dict(stream=True, stream_options={"include_usage": True}) if stream else {}
    whole = {} if stream else {"prompt_logprobs": 1}
    yield from (("/v1/chat/completions", body) for body in chats(**extra))
    yield "/v1/chat/completions", chat_body("tiny", "Hi", max_tokens=2, **extra, **whole)
    yield "/v1/completions", dict(model="one", prompt="Hi", max_tokens=3, logprobs=2, return_token_ids=True, **extra, **whole)
    plain = {"stream": True} if stream else {}
    yield "/v1/responses", dict(model="tiny", input="Hi", max_output_tokens=3, user="u", instructions="Be brief.", temperature=0, top_p=1, **plain)
    yield "/v1/responses", dict(model="tiny", input="Hi", max_output_tokens=300, tools=CALL, tool_choice="required", **plain)


def upload(server, text):
    form = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="a"\r\n\r\n{value}\r\n'
                   for name, value in {"purpose": "batch", "file": text}.items())
    status, text = server.request("POST", "/v1/files", (form + "--b--").encode(), {"Content-Type": "multipart/form-data; boundary=b"})
    assert status == 200, text
    return json.loads(text)


def ended(server, batch):
    def current():
        return json.loads(server.request("GET", f"/v1/batches/{batch['id']}")[1])
    server.wait_until(lambda: current()["status"] in ("completed", "failed", "cancelled"), "the batch ends")
    return current()


def batch_answers(server):
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "Hi", "max_tokens": 2}}
    for text in (json.dumps(line), "{"):
        file = upload(server, text)
        yield "/v1/files", "post", JSON, file
        yield "/v1/files/{file_id}", "get", JSON, json.loads(server.request("GET", f"/v1/files/{file['id']}")[1])
        batch = server.post("/v1/batches", {"input_file_id": file["id"], "endpoint": line["url"], "metadata": {"a": "b"}})
        yield "/v1/batches", "post", JSON, batch
        yield "/v1/batches/{batch_id}", "get", JSON, ended(server, batch)
        yield "/v1/files/{file_id}", "delete", JSON, json.loads(server.request("DELETE", f"/v1/files/{file['id']}")[1])
    slow = [line | {"custom_id": str(i), "body": line["body"] | {"max_tokens": 500, "ignore_eos": True}} for i in range(100)]
    file = upload(server, "\n".join(map(json.dumps, slow)))
    batch = server.post("/v1/batches", {"input_file_id": file["id"], "endpoint": line["url"]})
    yield "/v1/batches/{batch_id}/cancel", "post", JSON, server.post(f"/v1/batches/{batch['id']}/cancel", None)
    ended(server, batch)
    for path in ("/v1/files", "/v1/batches"):
        yield path, "get", JSON, json.loads(server.request("GET", path)[1])


def stream_answers(server):
    path = "/v1/streams"
    begun = server.post(path, {"source": "push", "name": "x", "fps": 1, "realtime": True, "mqtt": False, "window": {"frames": 1},
                               "skip_still": False, "still_blocks": False, "max_tokens": 2, "skills": [
        {"model": "one", "question": "Hi", "event": {"when": {"not": {"label": "x"}}}}]})
    yield path, "post", JSON, begun
    one, known = f"{path}/{begun['id']}", path + "/{stream_id}"
    status, text = server.request("POST", f"{one}/frames", picture(1), {"Content-Type": "image/png"})
    assert status == 200, text
    yield known + "/frames", "post", JSON, json.loads(text)
    read = lambda place: json.loads(server.request("GET", place)[1])
    server.wait_until(lambda: len(read(f"{one}/events")["data"]) > 2, "its events")
    yield known + "/events", "get", JSON, read(f"{one}/events")
    yield known, "get", JSON, read(one)
    yield path, "get", JSON, read(path)
    yield "/v1/stats", "get", JSON, read("/v1/stats")
    for change in ("pause", "resume"):
        yield f"{known}/{change}", "post", JSON, server.post(f"{one}/{change}", None)
    yield known, "delete", JSON, json.loads(server.request("DELETE", one)[1])


def answers(server, document):
    """Yields (path as in the document, method, content type, answer)."""
    for path, body in bodies(stream=False):
        yield path, "post", JSON, server.post(path, body)
    for path, body in bodies(stream=True):
        status, text = server.request("POST", path, body)
        assert status == 200, text
        for event in events(text):
            yield path, "post", EVENTS, event
    yield "/classify", "post", JSON, server.post("/classify", {"model": "three", "input": ["Hi", "Ho"]})
    yield "/v1/embeddings", "post", JSON, server.post("/v1/embeddings", {"input": "Hi"})
    yield "/rerank", "post", JSON, server.post("/rerank", {"query": "Hi", "documents": ["Ho"]})
    yield "/score", "post", JSON, server.post("/score", {"text_1": "Hi", "text_2": "Ho"})
    yield "/tokenize", "post", JSON, server.post("/tokenize", {"prompt": "Hi"})
    yield "/detokenize", "post", JSON, server.post("/detokenize", {"tokens": [5, 6]})
    yield from batch_answers(server)
    yield from stream_answers(server)
    skills = {"skills": ["one", "two"], "image": image_part(picture(1))["image_url"]["url"], "prompt": "Hi", "max_tokens": 2}
    yield "/v1/analyze", "post", JSON, server.post("/v1/analyze", skills)
    for event in events(server.request("POST", "/v1/analyze", skills | {"stream": True})[1]):
        yield "/v1/analyze", "post", EVENTS, event
    yield "/v1/models/{model}", "get", JSON, json.loads(server.request("GET", "/v1/models/three")[1])
    for path, methods in document["paths"].items():
        if "{" not in path and JSON in methods.get("get", {"responses": {"200": {}}})["responses"]["200"].get("content", {}):
            yield path, "get", JSON, json.loads(server.request("GET", path)[1])


def test_documented_fields_are_those_of_answers(server, document):
    seen, faults = {}, []
    for path, method, kind, answer in answers(server, document):
        schema = document["paths"][path][method]["responses"]["200"]["content"][kind]["schema"]
        found = []
        compare(answer, schema, "", seen.setdefault((path, method, kind), set()), found)
        faults += [f"{path} {kind}: {fault}" for fault in found]
    assert not faults
    for (path, method, kind), known in seen.items():
        schema = document["paths"][path][method]["responses"]["200"]["content"][kind]["schema"]
        never = [place for place in places(schema) if place not in known and (path, kind, place) not in RARE
                 and place not in THOUGHTS]
        assert not never, (path, kind)


def test_every_endpoint_with_a_body_has_its_answer(server, document):
    without = {path for path, methods in document["paths"].items() for operation in methods.values() if "content" not in operation["responses"]["200"]}
    assert without == {"/health", "/ready", "/ping"}  # empty bodies
    for path in without:
        assert server.request("GET", path) == (200, "")


def test_errors_have_the_documented_body_and_status(server, document):
    error = document["components"]["schemas"]["Error"]
    for method, path, body in [("POST", "/v1/chat/completions", {"model": "none", "messages": []}), ("POST", "/classify", {}),
                               ("POST", "/v1/load_lora_adapter", {}), ("GET", "/v1/models/none", None)]:
        status, text = server.request(method, path, body)
        faults = []
        compare(json.loads(text), error, "", set(), faults)
        operation = document["paths"].get(path, document["paths"]["/v1/models/{model}"])[method.lower()]
        assert not faults and str(status) in operation["responses"], (path, status)
