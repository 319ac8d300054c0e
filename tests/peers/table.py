"""Writes docs/compatibility.md from rows.json: .venv/bin/python tests/peers/table.py"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "helpers"))
from itertools import groupby

from peers import VERDICTS, counts, rows
from programs import REPOSITORY

TABLE = REPOSITORY / "docs" / "compatibility.md"
HEAD = """# Compatibility with vLLM's tests

The demands of vLLM's own tests of its HTTP interface, and whether valora meets them. `tests/peers` expresses each demand anew, on the demo's
model and adapters: a row that passes has a test that passes, a row that differs has a test that asserts vLLM's demand and must fail. A
feature that valora lacks is refused by name or answered 404, which a test checks, unless the row says that it has no effect. Rows are cases of files
under vLLM's `tests/entrypoints` (2026), in brackets a part of one. Tests of vLLM's Python classes that say nothing about HTTP are left out.

| | rows |
|---|--:|
{numbers}

Of the {all} rows that need neither trained weights nor a feature that valora does not have, {share:.0f} % pass. This file is written by
`tests/peers/table.py`.
"""


def document():
    number = counts()
    numbers = "\n".join(f"| {words.replace('*', '')} | {number[verdict]} |" for verdict, words in VERDICTS.items())
    comparable = number["passes"] + number["differs"]
    parts = [HEAD.format(numbers=numbers, all=comparable, share=100 * number["passes"] / comparable)]
    for file, cases in groupby(rows().items(), key=lambda item: item[0][0]):
        lines = [f"| `{case}` | {row['demands']} | {VERDICTS[row['verdict']]}{': ' + row['why'] if 'why' in row else ''} |"
                 for (_, case), row in cases]
        parts.append("\n".join([f"\n## {file}\n", "| case | demands | valora |", "|---|---|---|", *lines, ""]))
    return "".join(parts)


if __name__ == "__main__":
    TABLE.write_text(document())
