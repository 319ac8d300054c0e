"""Hostile answer forms alongside other requests, and white space in JSON, over HTTP."""

import concurrent.futures
import http.client
import json
import re
import threading
import time

import openai
import pytest

from programs import generate
from serving import Server, chat_body

# The number of ways to parse the text grows with every token.
AMBIGUOUS = "root ::= s\ns ::= s s s | s s | [a-z ]"
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2}}, "required": ["a"]}
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


@pytest.fixture(scope="module")
def served(folders):
    server = Server({"model": folders["model"]}, "--form-compile-limit", "2")
    yield server
    server.stop()


@pytest.fixture
def patient(folders):
    """Compiles forms for an hour."""
    server = Server({"model": folders["model"]}, "--form-compile-limit", "3600")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def compact(folders):
    server = Server({"model": folders["model"]}, "--structured-outputs-config", '{"disable_any_whitespace": true}')
    yield server
    server.stop()


def wanting(served, text):
    """A logit_bias that makes a model write these characters wherever it may."""
    answers = [served.post("/tokenize", {"model": "tiny", "prompt": c, "add_special_tokens": False}) for c in text]
    return {str(token): 100 for answer in answers for token in answer["tokens"]}


def answer(served, **fields):
    return served.chat("tiny", "Tell me.", temperature=0, max_tokens=120, ignore_eos=False, **fields)["choices"][0]["message"]["content"]


def endless(i):
    """A schema with more combinations of properties than can be compiled; differs with i."""
    return {"type": "object", "title": str(i), "minProperties": 150, "maxProperties": 160,
            "properties": {f"p{i}": {"type": "integer"} for i in range(300)}}


def test_streams_continue_during_ambiguous_grammars(served):
    """32 choices under a grammar in which every token takes longer than the one before."""
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=120)
    expected = served.chat("tiny", "Tell me things.", max_tokens=60)["choices"][0]["message"]["content"]
    ended, gaps, wrong = threading.Event(), [], []

    def stream():
        while not ended.is_set():
            text, last = "", None
            for chunk in client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Tell me things."}], stream=True,
                                                        max_tokens=60, temperature=0, extra_body={"ignore_eos": True}):
                text += chunk.choices[0].delta.content or ""
                if last:
                    gaps.append(time.monotonic() - last)
                last = time.monotonic()
            if text != expected:
                wrong.append(text)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(stream)
        try:
            body = chat_body("tiny", "Words.", n=32, max_tokens=400, temperature=1, ignore_eos=True, guided_grammar=AMBIGUOUS)
            status, text = served.request("POST", "/v1/chat/completions", body, timeout=120)
        finally:
            ended.set()
        other.result()
    assert status == 400, text
    error = json.loads(text)["error"]
    assert "too complex" in error["message"] and error["param"] == "guided_grammar"
    assert not wrong and len(gaps) > 20
    assert max(gaps) < 3  # 0.1 s of CPU time plus a token; the machine may be busy


def test_prompts_of_a_request_share_their_time(served):
    """64 prompts with two choices each have the time of one request; a chat beside them is answered as ever."""
    expected = served.chat("tiny", "Tell me things.", max_tokens=40)["choices"][0]["message"]["content"]
    body = {"model": "tiny", "prompt": [f"Words {i}." for i in range(64)], "n": 2, "max_tokens": 400, "temperature": 1, "ignore_eos": True,
            "guided_grammar": AMBIGUOUS}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        many = pool.submit(served.request, "POST", "/v1/completions", body, timeout=300)
        beside = [served.chat("tiny", "Tell me things.", max_tokens=40)["choices"][0]["message"]["content"] for _ in range(3)]
        status, text = many.result()
    assert status == 400, text
    error = json.loads(text)["error"]
    assert "too complex" in error["message"] and error["param"] == "guided_grammar"
    assert beside == [expected] * 3


def test_stream_under_an_ambiguous_grammar_ends_with_an_error(served):
    body = chat_body("tiny", "Words.", n=8, max_tokens=800, temperature=1, ignore_eos=True, stream=True, guided_grammar=AMBIGUOUS)
    status, text = served.request("POST", "/v1/chat/completions", body, timeout=120)
    assert status == 200
    assert "too complex" in text


def test_small_grammars_do_not_wait_for_slow_ones(served):
    def slow(i):
        body = chat_body("tiny", "x", guided_json=endless(i))
        return served.request("POST", "/v1/chat/completions", body, headers={"Authorization": f"Bearer key-{i}"}, timeout=120)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        others = [pool.submit(slow, i) for i in range(3)]
        time.sleep(0.5)
        start = time.monotonic()
        assert answer(served, guided_choice=[f"a new form {start}"]).startswith("a new form")
        taken = time.monotonic() - start
        statuses = [other.result() for other in others]
        whole = time.monotonic() - start
    for status, text in statuses:
        assert status == 400 and "too complex: it takes more than 2 seconds" in text
    assert taken < 0.5 * whole


def preparing(server):
    return server.metric("valora:num_requests_preparing")


def test_compilations_end_with_their_clients(patient):
    connections = []
    for i in range(4):
        connection = http.client.HTTPConnection("127.0.0.1", patient.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat_body("tiny", "x", guided_json=endless(i))),
                           {"Content-Type": "application/json", "Authorization": f"Bearer key-{i}"})
        connections.append(connection)
    patient.wait_until(lambda: preparing(patient) == 4, "four forms being compiled")
    for connection in connections:
        connection.close()
    patient.wait_until(lambda: preparing(patient) == 0, "the end of their requests")
    assert answer(patient, guided_choice=["a form"]) == "a form"
    assert patient.stop() == 0


def test_drain_waits_for_no_compilation(patient):
    def ask(i):
        return patient.request("POST", "/v1/chat/completions", chat_body("tiny", "x", guided_json=endless(i)),
                               headers={"Authorization": f"Bearer key-{i}"}, timeout=120)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        others = [pool.submit(ask, i) for i in range(4)]
        patient.wait_until(lambda: preparing(patient) == 4, "four forms being compiled")
        patient.process.terminate()
        for status, text in [other.result() for other in others]:
            assert status == 503 and "shutting down" in text, text
    patient.process.wait(60)
    assert patient.process.returncode == 0


WHOLE = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 300}}}


def test_long_minimum_is_served(served):
    content = served.chat("tiny", "Tell me.", temperature=1, max_tokens=900, ignore_eos=False, guided_json=WHOLE,
                          logit_bias=wanting(served, '"'))["choices"][0]["message"]["content"]
    assert len(json.loads(content)["a"]) >= 300


@pytest.mark.parametrize("fields, words", [
    ({"guided_json": {"type": "object", "required": [f"b{i}" for i in range(10)],
                      "properties": {"a": {"type": "array", "items": {}, "minItems": 2}}
                      | {f"b{i}": {"type": "string", "minLength": 9000 + i} for i in range(10)}}},
     ['"minLength" at #/properties/b9', "tokens of context"]),
    ({"guided_regex": "".join(f"[a-z]{{9000,}}{i}" for i in range(10))}, ["tokens of context"]),
    ({"guided_grammar": 'root ::= "a" b\nb ::= "x" b'}, ["endless"]),
    ({"guided_json": {"$defs": {"n": {"type": "object", "required": ["n"], "properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}},
     ["endless", "$ref"]),
    ({"guided_regex": r"a[^\s\S]"}, ["no character matches"]),
], ids=str)
def test_impossible_form_is_refused_before_it_begins(served, fields, words):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", "Tell me.", stream=True, max_tokens=None, **fields))
    assert status == 400, text
    error = json.loads(text)["error"]
    assert error["param"] in fields
    for word in words:
        assert word in error["message"]


@pytest.mark.parametrize("fields, expected", [
    ({}, r"\{\n\s?[^\n]*\n"),
    ({"structured_outputs": {"disable_any_whitespace": True}}, r'\{"a": \[1, 1\]\}$'),
    ({"structured_outputs": {"json_whitespace": "compact"}}, r'\{"a": \[1, 1\]\}$'),
    ({"structured_outputs": {"json_whitespace": "free"}}, r"\{\n{20,}"),
], ids=str)
def test_request_sets_json_white_space(served, fields, expected):
    """With a model that writes line breaks wherever it may."""
    text = answer(served, response_format=FORM, logit_bias=wanting(served, "\n1"), **fields)
    assert re.match(expected, text), text
    if "free" not in str(fields):
        assert json.loads(text) == {"a": [1, 1]}


def test_server_option_sets_json_white_space(compact):
    bias = wanting(compact, "\n1")
    assert answer(compact, response_format=FORM, logit_bias=bias) == '{"a": [1, 1]}'
    text = answer(compact, response_format=FORM, logit_bias=bias, structured_outputs={"json_whitespace": "bounded"})
    assert text.startswith("{\n") and json.loads(text) == {"a": [1, 1]}


@pytest.mark.parametrize("fields", [
    {"structured_outputs": {"json_whitespace": "none"}}, {"structured_outputs": {"disable_any_whitespace": 1}},
    {"structured_outputs": {"json": {}, "whitespace_pattern": "[ ]?"}}, {"guided_whitespace_pattern": "[ ]?"}], ids=str)
def test_unsupported_white_space_is_refused(served, fields):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", "Tell me.", **fields))
    assert status == 400, text
    error = json.loads(text)["error"]
    assert error["param"] in fields and "whitespace" in error["message"]


def test_generate_accepts_the_white_space_option(folders, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA | {"additionalProperties": False}))
    text = generate(folders["model"], "--prompt", "Tell me.", "--temperature", 1, "--max-tokens", 200, "--json-schema", file,
                    "--json-whitespace", "compact")["text"]
    assert re.fullmatch(r'\{"a": \[[12], [12]\]\}', text)
