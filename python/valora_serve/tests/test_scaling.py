"""How many replicas there should be, and a cluster that scales accordingly: from zero to two and
back."""

import types

import pytest

from clusters import chat, wait_until
from load import Load, expected
from valora_serve.scaling import ByQueueAndAttainment, wanted
from valora_serve.statistics import first_tokens_within

SETTINGS = {
    "min_replicas": 0,
    "max_replicas": 2,
    "target_ongoing_requests": 4,
    "upscale_delay": 0.5,
    "downscale_delay": 3,
    "look_back": 2,
    "ttft_target": 30,
}


@pytest.mark.parametrize(
    "requests, replicas, attained, expected_wish",
    [
        (0, 2, None, 0),
        (40, 2, None, 4),
        (40, 2, 1.0, 4),
        (40, 0, None, 4),  # determined by the queue
        (8, 2, 0.94, 3),
        (8, 4, 0.5, 7.6),
        (8, 4, 0.0, 8),  # late: at least one more, at most twice as many
        (80, 2, 0.5, 8),  # the queue requires more
        (0, 2, 0.2, 0),
    ],
)  # nothing is running, so nothing can be late
def test_wanted_replicas_follow_load_and_attainment(requests, replicas, attained, expected_wish):
    assert wanted(requests, 10, replicas, attained, 0.95) == pytest.approx(expected_wish)


def test_policy_reads_rays_autoscaling_context():
    context = types.SimpleNamespace(
        aggregated_metrics={"attainment": {"a": 0.4, "b": 0.6}},
        current_num_replicas=2,
        total_num_requests=8.0,
        config=types.SimpleNamespace(get_target_ongoing_requests=lambda: 10),
    )
    assert ByQueueAndAttainment(0.95)(context)[0] == pytest.approx(3.8)
    context.aggregated_metrics = None
    assert ByQueueAndAttainment(0.95)(context)[0] == pytest.approx(0.8)


def test_first_tokens_within_target_are_counted():
    name = "vllm:time_to_first_token_seconds"
    text = (
        "".join(
            f'{name}_bucket{{model_name="m",le="{bound}"}} {count}\n'
            for bound, count in (("0.1", 3), ("1", 7), ("+Inf", 9))
        )
        + f'{name}_count{{model_name="m"}} 9\n'
    )
    assert first_tokens_within(text, 0.5) == (3, 9)
    assert first_tokens_within(text, 1.0) == (7, 9)
    assert first_tokens_within(text, 0.01) == (0, 9)


def test_deployment_scales_from_zero_to_two_and_back(application, single):
    wait_until(lambda: application.running() == 0, "no replica runs", 60)
    body = chat("mood", "Hello")
    first = application.client.post(
        "/v1/chat/completions", json=body
    )  # waits for a replica to start
    assert first.status_code == 200, first.text
    assert (
        first.json()["choices"] == single.post("/v1/chat/completions", json=body).json()["choices"]
    )
    load = Load(expected(single), clients=24)
    with load:
        wait_until(lambda: application.running() == 2, "two replicas run", 90)
    assert load.wrong == []
    wait_until(lambda: application.running() == 0, "the replicas have left", 120)
    assert application.client.get("/health").status_code == 200
    assert "valora_serve:replicas" in application.client.get("/metrics").text
    models = application.client.get("/v1/models")  # also starts a replica
    assert models.status_code == 200 and models.json()["data"]
