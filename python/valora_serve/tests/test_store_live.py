"""Adapters from a shared store on real replicas, and a rolling update of one."""

import shutil

import pytest

from clusters import REPOSITORY, Application, chat, demo_settings, have_store
from valora_serve.store import SUMS, sums_of

ADAPTERS = REPOSITORY / "demo/adapters"


@pytest.fixture(scope="module")
def application(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    have_store(folder / "store", ("adapter-1", "adapter-3"))
    running = Application(
        cluster,
        demo_settings(
            replicas=2,
            manifest="",
            adapters=str(folder / "store"),
            cache=str(folder / "cache"),
            cache_bytes="8M",
        ),
    )
    running.store = folder / "store"
    running.cache = folder / "cache"
    yield running
    running.stop()


def ask(application, model):
    answers = [
        application.client.post("/v1/chat/completions", json=chat(model, "Where is it?"))
        for _ in range(6)
    ]
    assert {answer.status_code for answer in answers} == {200}, answers[0].text
    return {answer.json()["choices"][0]["message"]["content"] for answer in answers}


def single_text(single, model):
    answer = single.post("/v1/chat/completions", json=chat(model, "Where is it?"))
    return answer.json()["choices"][0]["message"]["content"]


def test_adapter_is_resolved_by_name(application, single):
    assert application.client.get("/v1/lora_adapters").json()["data"] == []
    assert ask(application, "adapter-3") == {single_text(single, "cars")}
    assert ask(application, "valora-demo:adapter-3") == {single_text(single, "cars")}
    assert len([entry for entry in application.cache.iterdir() if entry.is_dir()]) == 1
    missing = application.client.post("/v1/chat/completions", json=chat("adapter-9", "Hello"))
    assert missing.status_code == 404


def test_broken_adapter_fails_only_its_requests(application):
    broken = application.store / "broken"
    shutil.copytree(ADAPTERS / "adapter-2", broken)
    (broken / SUMS).write_text(sums_of(broken).replace("0", "1"))
    answer = application.client.post("/v1/chat/completions", json=chat("broken", "Hello"))
    assert (
        answer.status_code == 400
        and "is not what SHA256SUMS says" in answer.json()["error"]["message"]
    )
    assert answer.json()["error"]["param"] == "model"
    assert ask(application, "valora-demo")


def test_adapter_is_replaced_on_every_replica(application, single):
    """The name gets new weights without a failed request."""
    before, after = single_text(single, "cars"), single_text(single, "actions")
    assert ask(application, "adapter-3") == {before} and before != after
    folder = application.store / "adapter-3"
    shutil.rmtree(folder)
    shutil.copytree(ADAPTERS / "adapter-2", folder)
    (folder / SUMS).write_text(sums_of(folder))
    replace = {"lora_name": "adapter-3", "load_inplace": True}
    answer = application.client.post("/v1/load_lora_adapter", json=replace)
    assert answer.status_code == 200, answer.text
    assert ask(application, "adapter-3") == {after}


def test_new_replicas_load_the_current_adapters(application, single):
    """A replica that starts later loads the adapters loaded at run time."""
    load = {"lora_name": "later", "lora_path": str(ADAPTERS / "adapter-2")}
    assert application.client.post("/v1/load_lora_adapter", json=load).status_code == 200
    application.deploy(application.settings.model_copy(update={"replicas": 3}))
    application.wait_for_replicas(3)
    from ray import serve

    from valora_serve.protocol import Call

    handle = serve.get_deployment_handle("ValoraServer", "valora")
    heads = handle.broadcast("ask", Call("GET", "/v1/lora_adapters", {}, b"", False)).results(
        timeout_s=30
    )
    assert len(heads) == 3 and all(b'"later"' in head.body for head in heads)
    assert ask(application, "later") == {single_text(single, "actions")}


def test_loading_adapters_requires_a_key(cluster, tmp_path):
    have_store(tmp_path / "store", ("adapter-3",))
    running = Application(
        cluster,
        demo_settings(
            manifest="",
            adapters=str(tmp_path / "store"),
            cache=str(tmp_path / "cache"),
            api_key="secret",
        ),
    )
    try:
        ask, load = chat("adapter-3", "Where is it?"), {"lora_name": "adapter-3"}
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            for path, body in (("/v1/chat/completions", ask), ("/v1/load_lora_adapter", load)):
                assert running.client.post(path, json=body, headers=headers).status_code == 401
            assert running.client.get("/v1/models", headers=headers).status_code == 401
        assert list((tmp_path / "cache").iterdir()) == []
        key = {"Authorization": "Bearer secret"}
        assert running.client.post("/v1/chat/completions", json=ask, headers=key).status_code == 200
        assert running.client.get("/v1/models", headers=key).status_code == 200
    finally:
        running.stop()
