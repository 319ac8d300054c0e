"""Extracts the commands, examples and links in the repository's Markdown files."""

import re
import shlex

from programs import REPOSITORY

DOCUMENTS = sorted(path for pattern in ("*.md", "docs/**/*.md", "demo/*.md", "fuzz/*.md", "python/*/*.md") for path in REPOSITORY.glob(pattern))
# First words of command blocks. Any other block without a language is a diagram.
PROGRAMS = re.compile(r"^(?:[A-Z_]+=\S+ )*(make|curl|docker|pip|git|valora|build/valora|(?:\.venv/bin/)?python|tools/\w+)(?: |$)")


def blocks(path):
    """(language, text) of each fenced block, and ("", text) for each run of indented lines after an empty line."""
    text = path.read_text()
    yield from re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for run in re.findall(r"(?<=\n\n)((?:    .*\n|\n(?=    ))+)", outside):
        yield "", re.sub(r"^    ", "", run, flags=re.MULTILINE)


def commands_of(block):
    """The words of each command in a block. A command continues over lines that end in a backslash or inside quotes."""
    text = ""
    for line in block.splitlines():
        text += line
        try:
            words = shlex.split(text.removesuffix("\\"), comments=True)
        except ValueError:  # an open quote
            text += "\n"
            continue
        if text.endswith("\\"):
            text = text.removesuffix("\\")
            continue
        if words:
            yield text, words
        text = ""
    assert not text, f"a command that does not end: {text}"


def commands(path):
    """(text, words) of each command in a block, or in a sentence if it begins with `valora` or `make`."""
    for language, block in blocks(path):
        if language in ("", "sh", "bash") and PROGRAMS.match(block):
            yield from commands_of(block)
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for text in re.findall(r"`((?:valora|make|tools/\w+) [^`]+)`", prose):
        yield text, shlex.split(text.replace("…", ""))


def links(path):
    """The local targets of a document's links."""
    found = re.findall(r"\]\(([^)\s]+)\)", path.read_text())
    return [link for link in found if not re.match(r"[a-z]+:", link)]
