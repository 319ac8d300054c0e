"""No value of a documented field may cause a fault in the served engine. Covers every endpoint and field in the tests'
table of fields."""

import json
import time

import pytest

from programs import REPOSITORY
from serving import Server, as_reranker

TABLE = json.loads((REPOSITORY / "src/server/openai/request_fields.json").read_text())
FEW_TOKENS = {"/v1/chat/completions": "max_tokens", "/v1/completions": "max_tokens", "/v1/responses": "max_output_tokens"}
LONG = "x" * 20_000


def entries_of(path):
    return [(field, entry) for field, entries in TABLE["fields"].items() for entry in entries if path in entry["endpoints"]]


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def variants(value):
    """The valid value, values of other types, huge ones, and containers of the value."""
    return [value, None, -1, 1e308, 2**64 - 1, "", LONG, [], [value] * 50, {}, {"value": value}, nested(30), {f"k{i}": i for i in range(300)}]


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    reranker = as_reranker(folders["model"], tmp_path_factory.mktemp("reranker") / "model")
    # The adapter names used in the table.
    server = Server({"model": reranker, "lens": folders["one"], "birds": folders["three"], "fake": folders["two"]})
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("path", TABLE["bodies"])
def test_no_field_value_causes_a_server_error(served, path):
    begin = time.monotonic()
    statuses = set()
    few = {FEW_TOKENS[path]: 1} if path in FEW_TOKENS else {}
    for field, entry in entries_of(path):
        for other in variants(entry["example"]):
            body = few | TABLE["bodies"][path] | entry.get("with", {}) | {field: other}
            status, text = served.request("POST", path, body)
            assert status == 200 or 400 <= status < 500, (field, str(other)[:200], status, text[:500])
            statuses.add(status)
    assert statuses >= {200, 400}
    print(f"{path}: {time.monotonic() - begin:.1f} s")
