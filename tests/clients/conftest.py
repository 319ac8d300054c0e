"""A server of the demo model and its tasks, asked by the newest releases of clients (.venv-clients, tools/setup)."""

import base64
import pathlib

import pytest

from serving import ServedProcess

DEMO = pathlib.Path(__file__).parents[2] / "demo"


@pytest.fixture(scope="session")
def served():
    server = ServedProcess("--model", DEMO / "model", "--served-model-name", "valora-demo", "--manifest", DEMO / "manifest.json",
                           "--threads", "1", "--pool-memory", "64M", "--max-model-len", "2048", "--tool-call-parser", "hermes")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def url(served):
    return f"{served.url}/v1"


@pytest.fixture(scope="session")
def digit():
    """A picture of a digit (PNG) as a data URL."""
    return "data:image/png;base64," + base64.b64encode((DEMO / "samples/digits-1.png").read_bytes()).decode()


@pytest.fixture(scope="session")
def question(digit):
    """Messages of a chat about it."""
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": digit}},
                                         {"type": "text", "text": "Which digit is written here?"}]}]


@pytest.fixture(scope="session")
def answer(served, question):
    """The answer of a plain request."""
    body = {"model": "digits", "messages": question, "max_tokens": 8, "temperature": 0}
    return served.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
