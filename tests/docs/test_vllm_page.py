"""docs/vllm-options.md must list every vLLM option that `valora serve` accepts or refuses, with the supported values."""

import re

from programs import REPOSITORY

TABLE = REPOSITORY / "src/cli/options/vllm_flags.cc"
PAGE = REPOSITORY / "docs/vllm-options.md"
ENTRY = re.compile(r'\{"(--[a-z0-9-]+)", (k\w+), "([^"]*)",(?:[^{}]|"[^"]*")*?(,\s*true)?\},\n')


def test_page_contains_the_generated_table():
    text = TABLE.read_text()
    entries = ENTRY.findall(text)
    assert len(entries) == text.count('{"--')
    accepted, refused = PAGE.read_text().split("\n## Refused\n")
    for name, _, served, never in entries:
        part = refused if never else accepted
        row = next((line for line in part.splitlines() if f"`{name}`" in line), None)
        assert row, f"{name} is not in its part of {PAGE.name}"
        for value in filter(None, served.split("|")):
            assert f"`{value}`" in row, f"{name} {value}"
    documented = set(re.findall(r"^\| `(--[a-z0-9-]+)`", accepted + refused, re.MULTILINE))
    assert documented <= {entry[0] for entry in entries}
