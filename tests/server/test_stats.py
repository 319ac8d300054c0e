"""/v1/stats once and as events, and the page's files on one connection."""

import http.client
import json
import time

import pytest

from serving import Server


@pytest.fixture(scope="module")
def server(folders):
    made = Server(folders, "--max-num-seqs", "4")
    yield made
    assert made.stop() == 0


def stats(server):
    status, text = server.request("GET", "/v1/stats")
    assert status == 200
    return json.loads(text)


def test_answers_are_counted_by_adapter(server):
    before = stats(server)
    server.chat("two", "Hi", max_tokens=5)
    server.chat("tiny", "Hi", max_tokens=3)
    after = stats(server)
    deadline = time.time() + 20
    while after["steps"]["count"] < before["steps"]["count"] + 8 and time.time() < deadline:
        after = stats(server)  # the last step is counted just after its answer
    assert after["totals"]["generated_tokens"] - before["totals"]["generated_tokens"] == 8
    by_name = {adapter["name"]: adapter for adapter in after["adapters"]}
    assert set(by_name) == {"one", "two", "three", "five"}
    two = by_name["two"]
    assert (two["requests"], two["generated_tokens"], two["rank"], two["place"]) == (1, 5, 16, "pool")
    assert two["mergeable"] and two["decoder"] and not two["vision"]
    assert abs(two["last_used"] - time.time()) < 60
    assert by_name["three"]["heads"] == ["score"] and by_name["one"]["requests"] == 0
    steps = after["steps"]
    assert steps["count"] - before["steps"]["count"] == len(steps["last"]) - len(before["steps"]["last"]) > 7
    assert sum(step["seconds"] for step in steps["last"]) == pytest.approx(steps["seconds"])
    assert {step["mode"] for step in steps["last"]} == {"unmerged"}
    assert any(step["prefill_tokens"] > 1 for step in steps["last"]) and any(step["adapters"] == 1 for step in steps["last"])
    blocks = after["memory"]["blocks"]
    assert blocks["total"] == sum(count for kind, count in blocks.items() if kind != "total")


def test_events_arrive_every_second_with_new_steps(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/v1/stats", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.getheader("Content-Type").startswith("text/event-stream")

    def event():
        line = response.readline()
        assert response.readline() == b"\n"
        return json.loads(line.removeprefix(b"data: "))

    first = event()
    began = time.monotonic()
    server.chat("one", "Hi", max_tokens=4)
    events = [event(), event()]
    assert 1 < time.monotonic() - began < 10
    numbers = [step["number"] for each in [first, *events] for step in each["steps"]["last"]]
    assert numbers == sorted(set(numbers))  # none is missing or repeated
    assert numbers[-1] == events[-1]["steps"]["count"]
    assert "adapters" not in first
    connection.close()


def test_unchanged_page_is_not_sent_again(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)

    def get(path, **headers):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response, response.read()

    whole, text = get("/ui/app.js")
    assert (whole.status, whole.getheader("Content-Type")) == (200, "text/javascript; charset=utf-8")
    tag = {"If-None-Match": whole.getheader("ETag")}
    known, nothing = get("/ui/app.js", **tag)
    assert (known.status, nothing, known.getheader("Content-Length")) == (304, b"", None)
    assert get("/ready")[0].status == 200  # on the same connection
    assert text
    connection.close()
