"""Large texts from some clients must not delay small requests of others."""

import http.client
import json
import threading

import pytest

from serving import Server

pytestmark = pytest.mark.alone

MESSAGES = [{"role": "user" if i % 2 == 0 else "assistant", "content": f"message {i}"} for i in range(100_001)]
LARGE = {"messages": ("/v1/chat/completions", {"messages": MESSAGES}),
         "text": ("/v1/completions", {"prompt": "several words of a text that has no end, " * 200_000}),
         "tokenize": ("/tokenize", {"prompt": "several words of a text that has no end, " * 200_000})}


@pytest.fixture(scope="module")
def server(folders):
    server = Server({"model": folders["model"]})
    yield server
    assert server.stop() == 0


@pytest.mark.parametrize("kind", LARGE)
def test_small_requests_do_not_wait_for_large_ones(server, kind):
    path, body = LARGE[kind]
    body = json.dumps({"model": "tiny", "max_tokens": 1} | body)
    connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=300) for _ in range(8)]
    for connection in connections:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
    answered = []

    def read(connection):
        response = connection.getresponse()
        response.read()
        answered.append(response.status)
        connection.close()

    readers = [threading.Thread(target=read, args=(connection,)) for connection in connections]
    for reader in readers:
        reader.start()
    for _ in range(3):
        server.chat("tiny", "hello", max_tokens=1)
    assert server.post("/tokenize", {"model": "tiny", "prompt": "hello"})["count"] > 0
    assert server.request("GET", "/health")[0] == 200
    before = len(answered)
    for reader in readers:
        reader.join()
    assert before <= 4, "the small requests waited for large ones"
    assert len(answered) == 8
