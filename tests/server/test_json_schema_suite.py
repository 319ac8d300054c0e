"""The JSON Schema test suite, draft 2020-12: whatever a grammar allows must be valid, according to the suite's instances
and `jsonschema`."""

import concurrent.futures
import importlib.metadata
import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from programs import find_program
from serving import Server, make_folders

SUITE = Path(__file__).resolve().parents[2] / f".venv/src/jsonschema-{importlib.metadata.version('jsonschema')}/json/tests/draft2020-12"
FAMILIES = {"string": ("minLength", "maxLength", "pattern"), "array": ("items", "prefixItems", "minItems", "maxItems"),
            "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
            "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "propertyNames", "patternProperties",
                       "unevaluatedProperties")}


def typed(schema):
    """The schema with the type implied by each keyword if none is given: narrower, and well-formed."""
    if isinstance(schema, list):
        return [typed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs"):
            out[key] = {name: typed(inner) for name, inner in value.items()}
        else:
            out[key] = value if key in ("const", "enum", "required", "default") else typed(value)
    if not out.keys() & {"type", "$ref", "const", "enum", "anyOf", "oneOf", "allOf"}:
        for kind, keys in FAMILIES.items():
            if out.keys() & set(keys):
                return out | {"type": "integer" if "multipleOf" in out else kind}
    return out


class Probe:
    """tests/probes/grammar_probe as a child process."""

    def __init__(self):
        self.process = subprocess.Popen([find_program("grammar_probe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def accepted(self, schema, texts, strict):
        """For each text, whether the schema's grammar accepts it; None if the schema is refused."""
        line = {"schema": json.dumps(schema, ensure_ascii=False), "strict": strict, "texts": texts}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()).get("accepted")


@pytest.fixture(scope="module")
def compiled():
    """(location, the suite's schema, the schema that compiles, instances, strict, acceptance of each
    instance by its grammar)"""
    files = sorted(SUITE.glob("*.json"))
    assert len(files) > 40, f"{SUITE} has no test suite: run tools/setup tests"
    probe = Probe()
    found = []
    for file in files:
        for group in json.loads(file.read_text()):
            texts = [json.dumps(test["data"], ensure_ascii=False) for test in group["tests"]]
            for strict in (False, True):
                for schema in (group["schema"], typed(group["schema"])):
                    accepted = probe.accepted(schema, texts, strict)
                    if accepted is not None:
                        found.append((f"{file.stem}: {group['description']}", group["schema"], schema, group["tests"], strict, accepted))
                        break
    probe.process.stdin.close()
    return found


def test_no_invalid_instance_is_allowed(compiled):
    wrong = [(place, test["description"], strict) for place, _, _, tests, strict, accepted in compiled
             for test, has in zip(tests, accepted, strict=True) if has and not test["valid"]]
    assert not wrong
    assert len(compiled) > 260
    refused = sum(not test["valid"] for *_, tests, _, _ in compiled for test in tests)
    assert refused > 340


def test_many_valid_instances_are_allowed(compiled):
    """Not all instances: a grammar requires properties in the schema's order and numbers in the
    usual form."""
    having = [has for *_, tests, strict, accepted in compiled if not strict
              for test, has in zip(tests, accepted, strict=True) if test["valid"]]
    assert sum(having) > 0.7 * len(having)


def test_answers_of_a_random_model_are_valid(compiled, tmp_path):
    server = Server({"model": make_folders(tmp_path)["model"]})

    def ask(case):
        place, _, schema, _, strict, _ = case
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
        return server.chat("tiny", "Tell me.", response_format=form, temperature=1, n=2, seed=len(place), max_tokens=120,
                           ignore_eos=False)["choices"]

    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, compiled))
    finally:
        server.stop()
    finished = 0
    for (place, original, *_), choices in zip(compiled, answers, strict=True):
        for choice in choices:
            if choice["finish_reason"] == "stop":
                finished += 1
                value = json.loads(choice["message"]["content"])
                assert jsonschema.Draft202012Validator(original).is_valid(value), (place, value)
    assert finished > len(compiled)
