"""Priorities and applications of users: what a request may ask for."""

import json

import pytest

from serving import Server, chat_body

KEYS = {"plain": "sk-plain-01", "urgent": "sk-urgent-2", "camera": "sk-camera-3"}
USERS = f"""users:
  - {{name: plain, key: {KEYS["plain"]}}}
  - {{name: urgent, key: {KEYS["urgent"]}, priority: -5}}
  - {{name: camera, key: {KEYS["camera"]}, applications: [video, archive]}}
"""
APPLICATIONS = """applications:
  - {name: retrieval, models: [one], priority: 1}
  - {name: video, models: [two]}
  - {name: archive, models: [three], priority: 3}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("rights")
    (root / "users.yaml").write_text(USERS)
    (root / "applications.yaml").write_text(APPLICATIONS)
    return ["--users", root / "users.yaml", "--applications", root / "applications.yaml"]


@pytest.fixture(scope="module")
def server(folders, files):
    made = Server(folders, *files)
    yield made
    assert made.stop() == 0


def ask(server, who, model="tiny", application=None, **fields):
    headers = {"Authorization": f"Bearer {KEYS[who]}"}
    if application:
        headers["X-Valora-Application"] = application
    status, text = server.request("POST", "/v1/chat/completions", chat_body(model, "Hi", **dict(max_tokens=2) | fields), headers)
    return status, json.loads(text)


def refused(answer, param, words):
    status, body = answer
    error = body["error"]
    assert (status, error["type"], error["param"]) == (403, "PermissionDeniedError", param)
    assert words in error["message"]


def answered(server, application):
    """Requests of the application answered so far."""
    _, text = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {KEYS['plain']}"})
    lines = [line for line in text.splitlines() if line.startswith("valora:application_requests_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if f'"{application}"' in line and '"ok"' in line)


def test_priority_above_the_default_is_refused(server):
    refused(ask(server, "plain", priority=-1), "priority", '"priority" -1 is above 0')
    refused(ask(server, "plain", "one", priority=0), "priority", '"priority" 0 is above 1')
    assert ask(server, "plain", priority=0)[0] == 200
    assert ask(server, "plain", "one", priority=2)[0] == 200


def test_user_may_have_a_higher_priority(server):
    assert ask(server, "urgent", priority=-5)[0] == 200
    refused(ask(server, "urgent", priority=-6), "priority", '"priority" -6 is above -5')


def test_option_allows_any_priority(folders, files):
    made = Server({"model": folders["model"]}, *files, "--allow-any-priority")
    assert ask(made, "plain", priority=-9)[0] == 200
    refused(ask(made, "urgent", priority=-9), "priority", '"priority" -9 is above -5')  # its own priority limit holds
    assert made.stop() == 0


def test_user_may_name_only_its_applications(server):
    refused(ask(server, "camera", application="retrieval"), "X-Valora-Application", "the user `camera` may not name the application `retrieval`")
    refused(ask(server, "camera", metadata={"application": "retrieval"}), "metadata.application", "may not name")
    refused(ask(server, "camera", user="retrieval"), "user", "may not name")
    assert ask(server, "camera", application="archive")[0] == 200
    assert ask(server, "plain", application="retrieval")[0] == 200
    _, text = server.request("GET", "/v1/applications", headers={"Authorization": f"Bearer {KEYS['camera']}"})
    assert [application["name"] for application in json.loads(text)["data"]] == ["video", "archive"]


def test_default_is_the_users_first_application(server):
    counts = {name: answered(server, name) for name in ("retrieval", "video", "archive")}
    assert ask(server, "camera")[0] == 200  # the base model belongs to no application
    assert ask(server, "camera", "one")[0] == 200  # belongs to retrieval, which is not the user's
    assert ask(server, "camera", "three")[0] == 200  # belongs to archive, which is the user's
    assert {name: answered(server, name) - count for name, count in counts.items()} == {"retrieval": 0, "video": 2, "archive": 1}


def test_metrics_name_nothing_without_a_key(server):
    assert ask(server, "camera", "two")[0] == 200
    _, known = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {KEYS['plain']}"})
    _, stranger = server.request("GET", "/metrics")
    for label in ('adapter_name="two"', 'application="video"'):
        assert label in known and label not in stranger
    assert "vllm:num_requests_running" in stranger


def test_users_see_no_folders_that_they_may_not_load(server, folders):
    _, text = server.request("GET", "/v1/models", headers={"Authorization": f"Bearer {KEYS['plain']}"})
    assert {card["id"]: card["root"] for card in json.loads(text)["data"]} == {
        name: name for name in ("tiny", "one", "two", "three", "five")}
    for path in ("/v1/lora_adapters", "/v1/stats"):
        _, text = server.request("GET", path, headers={"Authorization": f"Bearer {KEYS['plain']}"})
        assert str(folders["one"]) not in text
