"""Constrained answers over HTTP: OpenAI's and vLLM's fields, checked by independent validators."""

import concurrent.futures
import json
import random
import re
import threading
import time
from typing import Annotated, Literal

import jsonschema
import openai
import pydantic
import pytest

from programs import generate
from serving import Server, chat_body

PROMPT = [{"role": "user", "content": "Tell me."}]


@pytest.fixture(scope="module")
def served(folders):
    server = Server({"model": folders["model"], "three": folders["three"]}, "--form-compile-limit", "2")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(served):
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=120)


def ask(served, seed=0, **fields):
    """(text, finish reason) of a sampled answer."""
    body = chat_body("tiny", "Tell me.", temperature=1, seed=seed, max_tokens=300, ignore_eos=False) | fields
    choice = served.post("/v1/chat/completions", body)["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def wanting(served, text):
    """A logit_bias that makes a model write these characters wherever it may."""
    answers = [served.post("/tokenize", {"model": "tiny", "prompt": c, "add_special_tokens": False}) for c in text]
    return {str(token): 100 for answer in answers for token in answer["tokens"]}


def refused(served, **fields):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("tiny", "Tell me.", **fields))
    assert status == 400, text
    error = json.loads(text)["error"]
    assert error["type"] in ("invalid_request_error", "BadRequestError") and error["param"] in fields
    return error["message"]


def schema_format(schema, **more):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema} | more}


class Box(pydantic.BaseModel):
    label: str = pydantic.Field(max_length=8)
    corner: tuple[int, int]
    sure: bool
    kind: str | None = pydantic.Field(max_length=4)


def test_openai_response_format_is_followed(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 40}},
              "required": ["n"], "additionalProperties": False}
    answer = client.chat.completions.create(model="tiny", messages=PROMPT, max_tokens=200,
                                            response_format=schema_format(schema, strict=True))
    assert 1 <= json.loads(answer.choices[0].message.content)["n"] <= 40
    assert answer.choices[0].finish_reason == "stop"


def test_openai_parse_returns_pydantic_models(client):
    parsed = []
    for seed in range(12):
        try:
            answer = client.beta.chat.completions.parse(model="tiny", messages=PROMPT, response_format=Box, temperature=1,
                                                        seed=seed, max_tokens=300)
        except openai.LengthFinishReasonError:
            continue
        parsed.append(answer.choices[0].message.parsed)
    assert len(parsed) > 6
    assert all(isinstance(box, Box) for box in parsed)


NAMES = ["id", "name", "größe", "a b", "x/y", 'qu"ote', "list", "ide", "i"]
LEAVES = ["integer", "string", "enum", "boolean", "null", "const", "number", "multiple", "pattern", "format", "types"]
BRANCHES = ["object", "array", "anyOf", "tuple", "map", "named map"]
FORMATS = ["date", "time", "date-time", "ipv4", "uuid", "hostname", "email", "colour"]


def random_schema(rng, depth=0):
    kind = rng.choice(LEAVES + (BRANCHES * 3 if depth < 3 else []))

    def inner():
        return random_schema(rng, depth + 1)

    low = rng.randint(0, 2)
    size = {"min": low, "max": low + rng.randint(0, 2)}
    if kind == "integer":
        least = rng.randint(-50, 50)
        return {"type": "integer", "minimum": least, "maximum": least + rng.randint(0, 300)}
    if kind == "number":
        return {"type": "number", rng.choice(["minimum", "exclusiveMinimum"]): -1.5, "maximum": rng.randint(0, 9)}
    if kind == "multiple":
        return {"type": "integer", "multipleOf": rng.randint(1, 12)}
    if kind == "pattern":
        return {"type": "string", "pattern": rng.choice(["^[a-z]{1,4}$", r"^\d{3}-[A-F]$", "^(ab|c)*x$"])}
    if kind == "format":
        return {"type": "string", "format": rng.choice(FORMATS)}
    if kind == "string":
        return {"type": "string", "minLength": size["min"], "maxLength": size["max"] + 4}
    if kind == "types":
        return {"type": rng.sample(["null", "boolean", "integer", "string"], 2)}
    if kind == "enum":
        return {"enum": rng.sample(["a", "é☃", 'q"\\', 3, -1.5, None, True, [1, "x"], {"k": []}], rng.randint(1, 4))}
    if kind == "const":
        return {"const": rng.choice(["fixed", 12, None])}
    if kind == "array":
        return {"type": "array", "items": inner(), "minItems": size["min"], "maxItems": size["max"]}
    if kind == "tuple":
        return {"type": "array", "prefixItems": [inner() for _ in range(1 + low)], "items": rng.choice([False, {"type": "null"}]),
                "minItems": 1 + low, "maxItems": 3 + low}
    if kind == "anyOf":
        return {"anyOf": [inner() for _ in range(rng.randint(1, 3))]}
    if kind == "map":
        return {"type": "object", "additionalProperties": inner(), "maxProperties": 3}
    if kind == "named map":
        return {"type": "object", "patternProperties": {"^[a-f]{2,3}$": inner()}, "additionalProperties": False}
    if kind == "object":
        names = rng.sample(NAMES, rng.randint(0, 4))
        schema = {"type": "object", "properties": {name: inner() for name in names},
                  "required": rng.sample(names, rng.randint(0, len(names)))}
        return schema | rng.choice([{}, {"additionalProperties": False}, {"additionalProperties": {"type": "boolean"}}])
    return {"type": kind}


def test_answers_match_random_schemas(served):
    rng = random.Random(11)
    schemas = [random_schema(rng) for _ in range(1000)]

    def one(seed):
        return ask(served, seed, response_format=schema_format(schemas[seed], strict=seed % 3 > 0), max_tokens=150)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(len(schemas))))
    finished = 0
    for schema, (text, reason) in zip(schemas, answers, strict=True):
        if reason == "length":
            continue
        finished += 1
        assert reason == "stop"
        jsonschema.validate(json.loads(text), schema)
    assert finished > 750


def test_additional_properties_are_allowed_only_without_strict(served):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for seed in range(5):
        text, reason = ask(served, seed, response_format=schema_format(schema))
        assert reason == "length" or list(json.loads(text)) == ["a"]
        text, reason = ask(served, seed, response_format=schema_format(schema, strict=False))
        if reason == "stop":
            jsonschema.validate(json.loads(text), schema)


def test_properties_keep_the_order_of_the_schema(served):
    flag = {"type": "boolean"}
    schema = {"type": "object", "properties": {"zebra": flag, "ant": flag, "mouse": flag},
              "required": ["ant", "mouse", "zebra"]}
    text, _ = ask(served, guided_json=schema)
    assert list(json.loads(text)) == ["zebra", "ant", "mouse"]


def test_json_object_format_returns_objects(served):
    finished = 0
    for seed in range(20):
        text, reason = ask(served, seed, response_format={"type": "json_object"}, max_tokens=200,
                           logit_bias={str(token): 2 for token in range(256)})
        assert text.lstrip().startswith("{")
        if reason == "stop":
            finished += 1
            assert isinstance(json.loads(text), dict)
    assert finished > 0


def test_schema_next_to_json_object_is_followed(served):
    """The form used by llama.cpp and Together."""
    schema = {"type": "object", "properties": {"team": {"enum": ["red", "blue"]}}, "required": ["team"], "additionalProperties": False}
    for kind in ("json_object", "json_schema"):
        text, reason = ask(served, response_format={"type": kind, "schema": schema})
        assert reason == "stop" and json.loads(text)["team"] in ("red", "blue")
    assert "schema" in refused(served, response_format={"type": "json_object", "schema": {"type": "object", "not": {}}})


def test_white_space_and_digits_are_bounded(served):
    """With a model that writes only white space and digits wherever it may."""
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
                                               "at": {"type": "string", "format": "date-time"}}, "required": ["a", "b", "at"]}
    for wanted in (" ", "\n", "\t", "3", ".3", "3e"):
        for form in (schema_format(schema), schema_format(schema | {"additionalProperties": False}, strict=False)):
            text, reason = ask(served, temperature=0, response_format=form, max_tokens=400, logit_bias=wanting(served, wanted))
            assert reason == "stop", text
            jsonschema.validate(json.loads(text), schema)
            assert not re.search(r"\n\s*\n|  ,|\s,", text), text


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = pydantic.Field(ge=0, le=9)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"  # its schema does not require it
    good: bool


class Owner(pydantic.BaseModel):
    pet: Cat | Dog = pydantic.Field(discriminator="kind")
    other: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")] | None


def test_pydantic_discriminated_unions_are_followed(served):
    schema = Owner.model_json_schema()
    assert "oneOf" in json.dumps(schema)
    kinds = set()
    for letter in "cd":
        for seed in range(5):
            text, reason = ask(served, seed, response_format=schema_format(schema), logit_bias=wanting(served, letter))
            if reason == "stop":
                jsonschema.validate(json.loads(text), schema)
                kinds.add(Owner.model_validate_json(text).pet.kind)
    assert kinds == {"cat", "dog"}


@pytest.mark.parametrize("pattern", [r"[A-Z]{2}\d{1,3}", r"(yes|no)( sir)?", r"\w+@\w{2,5}\.(com|de)", "[äöü☃]{3}", r"a.c?"])
def test_answers_match_regexes(served, pattern):
    for seed in range(10):
        text, reason = ask(served, seed, structured_outputs={"regex": pattern}, max_tokens=400)
        assert reason == "length" or re.fullmatch(pattern, text, re.ASCII), text
        text, reason = ask(served, seed, guided_regex=pattern, max_tokens=400)
        assert reason == "length" or re.fullmatch(pattern, text, re.ASCII), text


def test_answers_match_choices_and_grammars(served):
    choices = ["left", "right", "up \"and\" down", "é\n"]
    seen = {ask(served, seed, structured_outputs={"choice": choices})[0] for seed in range(30)}
    assert seen <= set(choices) and len(seen) > 1
    grammar = 'root ::= "(" root ")" | [0-9]'
    for fields in ({"guided_grammar": grammar}, {"structured_outputs": {"grammar": grammar}}):
        text, reason = ask(served, 3, **fields)
        assert reason == "length" or re.fullmatch(r"\(*\d\)*", text)
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<n>", "end": "</n>",
                                                "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}}}
    assert ask(served, 1, response_format=tag)[0] in ("<n>true</n>", "<n>false</n>")


def test_completions_with_several_choices_match(served):
    answer = served.post("/v1/completions", {"model": "tiny", "prompt": ["a", "b"], "n": 3, "temperature": 1,
                                             "max_tokens": 20, "guided_choice": ["one", "two"]})
    assert len(answer["choices"]) == 6
    assert {choice["text"] for choice in answer["choices"]} <= {"one", "two"}


def test_stream_joins_to_the_whole_answer(client):
    choices = {"choice": ["a rather long answer of many tokens", "another one, longer than that by some words"]}
    arguments = dict(model="tiny", messages=PROMPT, max_tokens=100, temperature=0, extra_body={"structured_outputs": choices})
    whole = client.chat.completions.create(**arguments).choices[0].message.content
    parts = [part.choices[0] for part in client.chat.completions.create(stream=True, **arguments)]
    assert "".join(part.delta.content or "" for part in parts) == whole in choices["choice"]
    assert len(parts) > 3 and parts[-1].finish_reason == "stop"


def test_truncated_answer_ends_with_length(served):
    text, reason = ask(served, structured_outputs={"choice": ["a rather long answer"]}, max_tokens=2)
    assert reason == "length" and "a rather long answer".startswith(text) and text


def test_log_probabilities_are_over_allowed_tokens(served):
    body = chat_body("tiny", "x", logprobs=True, top_logprobs=5, ignore_eos=False,
                     structured_outputs={"regex": "[ab]c"})
    first = served.post("/v1/chat/completions", body)["choices"][0]["logprobs"]["content"]
    assert {top["token"] for top in first[0]["top_logprobs"]} <= {"a", "b", "ac", "bc"}
    assert first[-1]["token"] != "c" or first[-1]["logprob"] == 0


def test_task_heads_refuse_constraints(served):
    status, text = served.request("POST", "/v1/chat/completions", chat_body("three", "x", guided_choice=["a"]))
    assert status == 400 and json.loads(text)["error"]["param"] == "guided_choice"


def nested(levels):
    return '{"items":' * levels + "{}" + "}" * levels


HOSTILE = {
    "nested": {"guided_json": nested(10000)},
    "enum": {"guided_json": {"enum": list(range(100000))}},
    "repetition": {"guided_regex": "a{1000000000}"},
    "nested repetitions": {"guided_regex": "((a{1000}){1000}){1000}"},
    "items": {"guided_json": {"type": "array", "items": {}, "minItems": 10**9}},
    "own reference": {"guided_json": {"$ref": "#"}},
    "circle": {"guided_json": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}},
    "null character": {"guided_regex": "a\0b"},
    "groups": {"guided_regex": "(" * 5000 + ")" * 5000},
    "bytes": {"guided_grammar": 'root ::= "' + "a" * 100000 + '"'},
    "left recursion": {"guided_grammar": "root ::= root"},
    "properties": {"guided_json": {"type": "object", "minProperties": 150, "maxProperties": 160,
                                   "properties": {f"p{i}": {"type": "integer"} for i in range(300)}}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_constraints_are_refused_in_time(served, name):
    start = time.monotonic()
    message = refused(served, **HOSTILE[name])
    assert time.monotonic() - start < 60
    start = time.monotonic()
    assert refused(served, **HOSTILE[name]) == message  # known by now
    assert time.monotonic() - start < 3


def most_resident_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def test_streams_continue_while_hostile_constraints_are_refused(served, client):
    questions = [f"Tell me {i} things." for i in range(8)]
    alone = [served.chat("tiny", question, max_tokens=60)["choices"][0]["message"]["content"] for question in questions]
    gaps, wrong, stopped = [], [], threading.Event()

    def stream(question, expected):
        while not stopped.is_set():
            text, last = "", time.monotonic()
            for chunk in client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": question}], stream=True,
                                                        max_tokens=60, temperature=0, extra_body={"ignore_eos": True}):
                text += chunk.choices[0].delta.content or ""
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
            if text != expected:
                wrong.append((question, text))

    before = most_resident_mib(served)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        streams = [pool.submit(stream, *pair) for pair in zip(questions, alone)]
        try:
            for fields in HOSTILE.values():
                (field, form), = fields.items()
                # A new text, which no earlier answer can have left in a cache.
                new = form | {"title": "new"} if isinstance(form, dict) else form + ("\n" if field == "guided_grammar" else "b")
                refused(served, **{field: new})
        finally:
            stopped.set()
        for done in streams:
            done.result()
    assert not wrong
    assert len(gaps) > 500 and max(gaps) < 20
    assert most_resident_mib(served) < before + 1000


def test_catastrophic_patterns_are_answered(served):
    for pattern in ("(a*)*b", "(a|a|a)*c", "(a?){100}a{100}", "[ab]*a[ab]{500}"):
        _, reason = ask(served, guided_regex=pattern, max_tokens=30)
        assert reason in ("stop", "length")


@pytest.mark.parametrize("fields", [
    {"response_format": {"type": "boxes"}}, {"response_format": {"type": "json_schema"}}, {"guided_regex": "(?=a)b"},
    {"guided_regex": "(a"}, {"guided_json": {"type": "object", "not": {}}}, {"guided_json": "{"}, {"guided_choice": [""]},
    {"structured_outputs": {"json": {}, "regex": "a"}}, {"structured_outputs": {"whitespace_pattern": " "}},
], ids=str)
def test_refusals_name_the_field(served, fields):
    refused(served, **fields)


def test_generate_accepts_the_same_constraints(folders, tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 40}}, "required": ["n"],
              "additionalProperties": False}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))

    def answer(*form, **options):
        return generate(folders["model"], "--prompt", "Tell me.", "--temperature", 1, "--max-tokens", 200, *form, **options)

    jsonschema.validate(json.loads(answer("--json-schema", file)["text"]), schema)
    assert re.fullmatch(r"[a-c]{3}-\d{2}", answer("--regex", r"[a-c]{3}-\d{2}")["text"])
    assert answer("--choice", "red,green,blue")["text"] in ("red", "green", "blue")
    for form, named in ((("--json-schema", tmp_path / "none.json"), "none.json"), (("--regex", "(a"), "parenthesis"),
                        (("--regex", "a", "--choice", "a,b"), "--")):
        done = answer(*form, check=False)
        assert done.returncode != 0 and named in done.stderr
