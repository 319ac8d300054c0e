"""Cost-based routing among real replicas: conversations and adapters return to where their prefixes and weights
are."""

import collections

import pytest

from clusters import Application, chat, demo_settings, sample_of, wait_until

LONG = (
    "All of these words are the beginning of a conversation that goes on for several turns. " * 12
)


@pytest.fixture(scope="module", params=[2, 3])
def replicas(application, request):
    application.deploy(application.settings.model_copy(update={"replicas": request.param}))
    application.wait_for_replicas(request.param)
    return request.param


def turn(application, model, messages):
    body = chat(model, "", max_tokens=8) | {"messages": messages}
    answer = application.client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def converse(application, model, name, turns=4):
    """Returns (replicas that answered, cached prompt tokens of the last turn, prompt tokens of the last turn)."""
    messages, where = [], []
    for i in range(turns):
        messages.append({"role": "user", "content": f"{name}. {LONG} Turn {i}."})
        answer = turn(application, model, messages)
        where.append(answer.headers["x-valora-replica"])
        messages.append(answer.json()["choices"][0]["message"])
    usage = answer.json()["usage"]
    return where, usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]


def test_conversation_stays_with_its_prefix(application, replicas):
    for i in range(4):
        where, cached, prompt = converse(application, "mood", f"Conversation {replicas} {i}")
        assert len(set(where)) == 1
        assert cached > 0.5 * prompt


def test_different_conversations_use_all_replicas(application, replicas):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = [
            pool.submit(converse, application, "valora-demo", f"At once {replicas} {i}", 2)
            for i in range(16)
        ]
        used = collections.Counter(name for job in jobs for name in job.result()[0])
    assert len(used) == replicas


def test_router_receives_statistics(application, replicas):
    """The router ranks by the replicas' reports."""
    from ray import serve

    handle = serve.get_deployment_handle("ValoraServer", "valora")
    reports = handle.broadcast("record_routing_stats").results(timeout_s=30)
    assert len(reports) == replicas
    for report in reports:
        assert report["base_names"] == ["valora-demo"]
        assert report["pool_tokens"] > 1000
        assert "mood" in report["resident"]


def test_metrics_count_prefix_hits(application, replicas):
    before = sample_of(application.client.get("/metrics").text, "vllm:prefix_cache_hits_total")
    converse(application, "race", f"Metrics {replicas}", 2)
    wait_until(
        lambda: (
            sample_of(application.client.get("/metrics").text, "vllm:prefix_cache_hits_total")
            > before
        ),
        "hits are counted",
    )


@pytest.mark.parametrize(
    "routing, spreads", [("power-of-two", False), ("round-robin", True), ("prefix", False)]
)
def test_every_routing_policy_serves(cluster, routing, spreads):
    running = Application(cluster, demo_settings(replicas=2, routing=routing))
    try:
        running.wait_for_replicas(2)
        answers = [turn(running, "mood", [{"role": "user", "content": "Hello"}]) for _ in range(8)]
        used = {answer.headers["x-valora-replica"] for answer in answers}
        assert len({answer.json()["choices"][0]["message"]["content"] for answer in answers}) == 1
        assert len(used) == 2 or not spreads
        if routing == "prefix":
            assert len(used) == 1  # one prompt
    finally:
        running.stop()
