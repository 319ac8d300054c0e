"""Commands, examples and links in the documents must exist, and a server of the demo must answer the
requests shown."""

import contextlib
import functools
import io
import json
import pathlib
import re
import subprocess

import pytest
from documents import DOCUMENTS, blocks, commands, links

from programs import REPOSITORY, find_program
from serving import ServedProcess

SHOWN = [pytest.param(words, id=f"{path.relative_to(REPOSITORY)}: {text[:60]}") for path in DOCUMENTS for text, words in commands(path)]
REQUESTS = [text for path in DOCUMENTS for text, words in commands(path) if words[0] == "curl"]
PYTHON = [block for path in DOCUMENTS for language, block in blocks(path) if language == "python"]
MAKEFILE = (REPOSITORY / "Makefile").read_text()


@functools.cache
def help_of(*subcommand):
    done = subprocess.run([find_program("valora"), *subcommand, "--help"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def subcommands(text):
    _, _, listed = text.partition("\nSubcommands:\n")
    return re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE)


def options(words):
    return [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def check_valora(words):
    path = []
    while words and (names := subcommands(help_of(*path))):
        if words[0] in names:
            path.append(words.pop(0))
        elif words[0].startswith("-"):
            break
        else:
            pytest.fail(f"valora {' '.join(path)} has no {words[0]}")
    known = set(re.findall(r"--?[a-z][a-z0-9-]*", help_of(*path))) | set(re.findall(r"--[a-z-]+", help_of()))
    assert set(options(words)) <= known


def check_make(words):
    for word in words:
        name, given, _ = word.partition("=")
        if given:
            used = [MAKEFILE, *(path.read_text() for path in (REPOSITORY / "tools").iterdir() if path.suffix == "" and path.is_file())]
            assert any(re.search(rf"\b{name}\b", text) for text in used), f"nothing reads {name}"
        else:
            assert re.search(rf"^{name}:", MAKEFILE, re.MULTILINE), f"make has no {name}"


def check_script(words):
    script = REPOSITORY / words[0]
    assert script.is_file()
    missing = [option for option in options(words) if f'"{option}"' not in script.read_text()]
    assert not missing


def check_paths(words):
    for word in words:
        if re.match(r"(demo|docs|fuzz|share|src|tests|tools)/", word):
            assert (REPOSITORY / word).exists(), word


CHECKS = {"valora": check_valora, "build/valora": check_valora, "make": check_make, "python": check_script, ".venv/bin/python": check_script}


@pytest.mark.parametrize("words", SHOWN)
def test_documented_command_exists(words):
    words = [word for i, word in enumerate(words) if not all(re.match(r"[A-Z_]+=", w) for w in words[:i + 1])]
    check_paths(words)
    if words[0] == ".venv/bin/python" and words[1] == "-m":
        return
    check = CHECKS.get(words[0])
    if check:
        check(words[1:])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_have_targets(path):
    for link in links(path):
        file, _, heading = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles], link


def test_option_tables_list_real_options():
    known = help_of("serve")
    table = (REPOSITORY / "docs/options.md").read_text() + (REPOSITORY / "README.md").read_text().partition("## Options of")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(--[a-z-]+)(?![a-z_-])", table))
    assert len(named) > 20 and named <= set(re.findall(r"--[a-z-]+", known))


def test_man_page_covers_every_subcommand():
    page = (REPOSITORY / "share/man/valora.1").read_text()
    names = [name for name in subcommands(help_of()) if name != "bench"] + [f"bench {name}" for name in subcommands(help_of("bench"))]
    assert len(names) > 6
    assert [name for name in names if f"\n.B {name}\n" not in page] == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The server of `make serve`, with a different port and thread count, with applications, and with batches."""
    page = blocks(REPOSITORY / "docs/applications.md")
    folder = tmp_path_factory.mktemp("demo")
    applications = folder / "applications.yaml"
    applications.write_text(next(text for language, text in page if language == "yaml"))
    listed = subprocess.run(["make", "--silent", "--eval", "shown: ; @echo $(DEMO_SERVE)", "shown"], cwd=REPOSITORY, check=True,
                            capture_output=True, text=True).stdout.split()
    port = listed.index("--port")
    server = ServedProcess(*listed[1:port], *listed[port + 2:], "--threads", "1",
                           "--applications", str(applications), "--batches-dir", str(folder / "batches"),
                           "--streams-dir", str(folder / "streams"), cwd=REPOSITORY)
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("text", REQUESTS)
def test_documented_request_is_answered(demo, text):
    adapter = sorted((REPOSITORY / "demo/adapters").iterdir())[0]
    text = text.replace("http://127.0.0.1:8000", demo.url).replace("/adapters/cats", str(adapter))
    done = subprocess.run(["bash", "-c", f"{text} --fail-with-body --silent"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


@pytest.mark.parametrize("block", PYTHON)
def test_documented_python_example_runs(demo, block, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.replace("http://127.0.0.1:8000", demo.url), "README.md", "exec"), {})
    sample = next(s for s in json.loads(pathlib.Path("demo/samples.json").read_text()) if f"demo/{s['media']}" in block)
    assert printed.getvalue().strip() == sample["expected"]
