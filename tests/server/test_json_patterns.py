"""Strings with a `pattern`: whatever a grammar allows must be JSON, and valid according to
`jsonschema`."""

import json
import re
import subprocess

import jsonschema
import pytest

from programs import find_program

PATTERNS = [
    "^é+$", "^é.*$", "^[é-ü]{2,4}$", "^[^é]+$", "^(é|\")+$", "^☃\\S{3}$", "^é\\s?x$", "^é\\D\\W$", "^ä[\\s\\S]{2}$", "^\\u00e9{3}$", "^\\xe9a$",
    "^\"$", "^\"a\"$", "^a\"?b$", "^[\"]$", "^[\"\\\\]{2}$", "^[^\"]+$", "^\\\\$", "^C:\\\\[a-z]+$", "^\\\\\"\\\\$", "^a\\\\n$", "^a\\nb$", "^\\t$",
    "^[\\n\\t]{2}$", "^\\x01$", "^[\\x00-\\x1f]$", "^.$", "^.{3}$", "^\\S+$", "^[ -~]{4}$", "^[^a-z]{3}$", "^\\W\\D$", "^[\\W]{2}$", "^a/b\\/c$",
    "^[\\^a]$", "^[a\\-z]$", "^[a\\]]{2}$", "^(?:ab|\"c\")$", "^ü\\\\\"$", "^é\"*$", "^é[\"]*x$", "^[\\\\é]{2}$", "^[\"é]+$", "^é\\x7f$",
    "^[^é]$", "^\\D$", "^\\W$", "^..$", "^[\\S]{2}$", "^[\\D]{2}$", "^[^a]$", "^a.c$", "^[\\^é]{2}$", "^[\\^]$"]
ASCII = re.compile(r"\\[DW]")  # negations of ASCII classes in ECMA-262, but of wider ones in Python


@pytest.fixture(scope="module")
def answers():
    """Random answers for a schema; None if it is refused."""
    process = subprocess.Popen([find_program("grammar_probe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(schema):
        process.stdin.write(json.dumps({"schema": json.dumps(schema), "strict": True, "walks": 200}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline()).get("answers")

    yield ask
    process.stdin.close()
    process.wait()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_answers_are_json_and_match_the_pattern(answers, pattern):
    schema = {"type": "string", "pattern": pattern}
    found = answers(schema)
    assert found
    for text in found:
        value = json.loads(text)
        assert re.fullmatch(pattern.replace("$", "\\Z"), value, re.ASCII if ASCII.search(pattern) else 0), text
        if not ASCII.search(pattern):
            jsonschema.validate(value, schema)


@pytest.mark.parametrize("pattern", ["^[é-ü]{1,3}$", "^q\"[a-c]$", "^b\\\\$"])
def test_property_names_match_the_pattern(answers, pattern):
    named = {"type": "object", "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False, "minProperties": 1}
    limited = {"type": "object", "propertyNames": {"pattern": pattern}, "additionalProperties": {"type": "null"}, "minProperties": 1}
    for schema in (named, limited):
        found = answers(schema)
        assert found
        for text in found:
            value = json.loads(text)
            jsonschema.validate(value, schema)
            assert all(re.search(pattern, name) for name in value)
