"""docs/compatibility.md must be generated from rows.json, and each row must have the test that
its verdict requires."""

import json
from collections import Counter

import pytest

import peers
from peers import counts, rows
from table import TABLE, document

REFUSED = [pytest.param(path, fields, param, id=f"{case}: {param or path}") for (_, case), row in rows().items()
           for path, fields, param in row.get("refused", [])]
LEAST = {"/v1/completions": {"prompt": "a"}, "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}]}}


def test_committed_table_is_up_to_date():
    assert TABLE.read_text() == document(), "run tests/peers/table.py"


def test_every_verdict_has_a_test():
    found = Counter(peers.tested())
    assert [case for case, times in found.items() if times > 1] == []
    assert set(found) == {case for case, row in rows().items() if row["verdict"] in ("passes", "differs")}


def test_most_applicable_rows_pass():
    number = counts()
    assert number["passes"] / (number["passes"] + number["differs"]) >= 0.85


@pytest.mark.parametrize("path, fields, param", REFUSED)
def test_missing_features_are_refused_by_name(served, path, fields, param):
    status, text = served.request("POST", path, {"model": "demo"} | LEAST.get(path, {}) | fields)
    if param is None:
        assert status == 404
    else:
        assert status == 400 and json.loads(text)["error"]["param"].startswith(param), text
