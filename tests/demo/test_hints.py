"""The commands that `make demo` prints, run as they are pasted."""

import importlib.util
import re
import subprocess
import sys

import pytest

from programs import REPOSITORY
from serving import ServedProcess

DEMO = REPOSITORY / "demo"
SPEC = importlib.util.spec_from_file_location("demo_hints", REPOSITORY / "tools" / "demo" / "hints.py")
hints = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(hints)


@pytest.fixture(scope="module")
def server():
    made = ServedProcess("--model", DEMO / "model", "--served-model-name", "valora-demo", "--manifest", DEMO / "manifest.json",
                         "--threads", "1", "--allowed-local-media-path", DEMO)
    yield made
    made.stop()


def run(command, folder):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, timeout=60)


def test_printed_commands_work_when_they_are_pasted(server, tmp_path):
    text = hints.hints(server.url, DEMO)
    commands = re.findall(r"^curl .*$", text, re.MULTILINE)
    assert len(commands) == 4 and text.count("curl") == 4
    answers = [run(command, tmp_path) for command in commands]
    assert [(done.returncode, done.stderr) for done in answers] == [(0, "")] * 4
    assert '"object":"chat.completion"' in answers[0].stdout.replace(": ", ":") and "error" not in answers[0].stdout
    assert answers[1].stdout.endswith("data: [DONE]\n\n")
    assert '"valora-demo"' in answers[2].stdout and "valora:engine_steps_total" in answers[3].stdout


def test_printed_program_works_where_openai_is(server, tmp_path):
    pytest.importorskip("openai")
    text = hints.hints(server.url, DEMO)
    program = text[text.index("~/openai-venv/bin/python -"):]
    done = run(program.replace("~/openai-venv/bin/python", sys.executable), tmp_path)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    assert "python3 -m venv ~/openai-venv && ~/openai-venv/bin/pip install" in text


def test_quotes_in_a_question_and_a_path_are_kept(tmp_path):
    folder = tmp_path / "it's here"
    folder.mkdir()
    (folder / "samples.json").write_text('[{"adapter": "a", "modality": "image", "media": "p.png", "task": "t", "question": "Who\'s \\"it\\"?"}]')
    text = hints.hints("http://127.0.0.1:1", folder)
    command = next(line for line in text.splitlines() if line.startswith("curl")).removesuffix("; echo")
    shown = run(command.replace("curl", "printf '%s\\n'", 1), tmp_path).stdout
    assert 'Who\'s \\"it\\"?' in shown and "it%27s%20here/p.png" in shown
