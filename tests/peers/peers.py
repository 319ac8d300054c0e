"""The cases of vLLM's entrypoint tests: rows.json states what each demands, and `peer` links one of our tests to a case."""

import ast
import functools
import json
import pathlib

import openai
import pytest

from programs import REPOSITORY

DEMO = REPOSITORY / "demo"
ADAPTERS = {f"adapter-{i}": str(DEMO / "adapters" / f"adapter-{i}") for i in range(1, 4)}
# Tokens that have no text. Without them and without an end token, an answer's length does not depend on
# the weights.
SPECIAL = {str(token): -100 for token in range(1266, 1280)}
FOLDER = pathlib.Path(__file__).parent
VERDICTS = {
    "passes": "passes",
    "differs": "**differs**",
    "weights": "depends on weights",
    "missing": "not in valora",
}


@functools.cache
def rows():
    """{(file, case): row}, in the file's order."""
    listed = json.loads((FOLDER / "rows.json").read_text())
    return {(file, case): row for file, cases in listed.items() for case, row in cases.items()}


def peer(file, case):
    """Marks the test of a case. Where valora differs, the test must fail: it asserts the peer's behaviour."""
    row = rows()[file, case]
    assert row["verdict"] in ("passes", "differs"), f"{case} is not a row with a test"
    if row["verdict"] == "passes":
        return lambda test: test
    return pytest.mark.xfail(strict=True, raises=(AssertionError, openai.APIError, pytest.fail.Exception), reason=row["why"])


def tested():
    """Each (file, case) named by a decorator in the test modules, read from their source."""
    found = []
    for module in sorted(FOLDER.glob("test_peer_*.py")):
        tree = ast.parse(module.read_text())
        names = {node.targets[0].id: node.value.value for node in tree.body
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "peer":
                file, case = node.args
                found.append((names[file.id] if isinstance(file, ast.Name) else file.value, case.value))
    return found


def counts():
    """Number of rows with each verdict."""
    verdicts = [row["verdict"] for row in rows().values()]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}
