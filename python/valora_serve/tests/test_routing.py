"""The cost of a request and the choice based on it, without Ray."""

import dataclasses

import pytest

from valora_serve.protocol import Hints
from valora_serve.request_hints import read_body
from valora_serve.routing.baselines import PowerOfTwoCore, PrefixCore, RoundRobinCore
from valora_serve.routing.core import CostCore, Recent
from valora_serve.routing.cost import Load, Rates, Weights, Work, expected_cost
from valora_serve.routing.simulation import Machine, simulate
from valora_serve.routing.workload import conversations, synthetic

RATES = Rates(step=1e-9, prefill_token=0.001, output_token=1e-9, adapter_load=0.5, medium=0.2)


def cost(work, load=None, weights=None):
    return expected_cost(work, load or Load(), RATES, weights or Weights(eviction=0.5, delay=0.0))


def test_cost_sums_uncached_tokens_media_and_queue():
    assert cost(Work(1000)).total == pytest.approx(1.0)
    assert cost(Work(1000, cached_tokens=600)).total == pytest.approx(0.4)
    assert cost(Work(1000, media_missing=2)).total == pytest.approx(1.4)
    assert cost(Work(1000), Load(wait=2)).total == pytest.approx(3.0)
    assert cost(Work(1000), Load(wait=2, slowness=3)).total == pytest.approx(9.0)


def test_adapter_load_overlaps_with_the_queue():
    missing = Work(1000, adapters_missing=1)
    assert cost(missing).total == pytest.approx(1.5)
    assert cost(missing, Load(wait=2)).total == pytest.approx(3.0)
    assert cost(missing, Load(wait=0.1, load_wait=1)).total == pytest.approx(2.5)
    assert cost(missing, Load(crowded=True)).total == pytest.approx(
        1.75
    )  # the evicted adapter may be needed again
    assert cost(Work(1000), Load(load_wait=5)).total == pytest.approx(
        1.0
    )  # other requests' loads do not delay it


def test_cost_includes_the_delay_of_running_sequences():
    assert cost(Work(1000), Load(sequences=10), Weights(delay=0.1)).total == pytest.approx(2.0)


def chain(*digests, block=100):
    return tuple((digest, (i + 1) * block) for i, digest in enumerate(digests))


def core_of(*names, **stats):
    core = CostCore()
    core.set_replicas(names)
    rates = dataclasses.asdict(RATES) | {
        "resident": [],
        "pool_tokens": 10_000,
        "base_names": ["base"],
    }
    for name in names:
        core.report(name, rates | stats, 0.0)
    return core


def test_request_goes_to_the_replica_with_its_adapter():
    core = core_of("r0", "r1", "r2")
    core.report("r1", {"resident": ["cats"]}, 1.0)
    hints = Hints("cats", prompt_tokens=100)
    assert core.ranked(hints, ["r0", "r1", "r2"], 1.0)[0] == "r1"
    assert (
        core.ranked(dataclasses.replace(hints, model="base:cats"), ["r0", "r1", "r2"], 1.0)[0]
        == "r1"
    )
    core.report("r1", {"resident": []}, 10.0)
    core.report("r2", {"resident": ["cats"]}, 10.0)
    assert core.ranked(hints, ["r0", "r1", "r2"], 10.0)[0] == "r2"


def test_adapter_affinity_ends_when_queueing_costs_more_than_loading():
    """An adapter spreads to more replicas only as it becomes popular."""
    core = core_of("r0", "r1", "r2")
    placed = []
    for i in range(40):
        hints = Hints("cats", prompt_tokens=100, prefix=chain(("own", i)))
        placed.append(core.ranked(hints, ["r0", "r1", "r2"], 1.0)[0])
        core.routed(str(i), placed[-1], hints, 1.0)
    first = placed[0]
    assert placed[:5] == [first] * 5  # 0.1 s each: loading elsewhere takes 0.5 s
    assert set(placed) == {"r0", "r1", "r2"}
    rare = core_of("r0", "r1", "r2")
    alone = []
    for i in range(40):
        hints = Hints("dogs", prompt_tokens=100, prefix=chain(("own", i)))
        alone.append(rare.ranked(hints, ["r0", "r1", "r2"], 10.0 * i)[0])
        rare.routed(str(i), alone[-1], hints, 10.0 * i)
        rare.completed(str(i), 10.0 * i + 1)
    assert len(set(alone)) == 1


def test_conversation_stays_with_its_prefix():
    core = core_of("r0", "r1", "r2")
    core.routed("1", "r2", Hints("base", prefix=chain(1, 2, 3), prompt_tokens=300), 1.0)
    core.completed("1", 2.0)
    longer = Hints("base", prefix=chain(1, 2, 3, 4), prompt_tokens=400)
    assert core.costs(longer, ["r0", "r2"], 3.0)["r2"].prefill == pytest.approx(0.1)
    assert core.ranked(longer, ["r0", "r1", "r2"], 3.0)[0] == "r2"
    other = Hints("base", prefix=chain(9, 2, 3, 4), prompt_tokens=400)
    assert core.costs(other, ["r2"], 3.0)["r2"].prefill == pytest.approx(0.4)


def test_picture_attracts_requests_with_another_prefix():
    core = core_of("r0", "r1")
    core.routed("1", "r1", Hints("base", prefix=chain(1), media=(77,), prompt_tokens=10), 1.0)
    core.completed("1", 2.0)
    again = Hints("base", prefix=chain(5), media=(77,), prompt_tokens=10)
    assert core.ranked(again, ["r0", "r1"], 3.0)[0] == "r1"


def test_stream_counts_as_queued_until_its_first_chunk():
    core = core_of("r0")
    next_one = Hints("base", prompt_tokens=10)

    def wait(now):
        return core.costs(next_one, ["r0"], now)["r0"].wait

    streams = [Hints("base", prompt_tokens=1000, streams=True) for _ in range(2)]
    for i, hints in enumerate(streams):
        core.routed(str(i), "r0", hints, 1.0)
    assert wait(1.5) == pytest.approx(1.5)  # one second each, half of which is over
    assert wait(4.0) == pytest.approx(1.0)  # the first one is late, the second one is still to come
    streams[0].begun = 4.0
    assert wait(4.25) == pytest.approx(0.75)
    streams[1].begun = 4.5
    assert wait(4.5) == 0.0


def test_whole_answer_counts_as_queued_for_its_expected_prefill():
    core = core_of("r0")
    core.routed("0", "r0", Hints("base", prompt_tokens=1000), 1.0)
    next_one = Hints("base", prompt_tokens=10)
    assert core.costs(next_one, ["r0"], 1.5)["r0"].wait == pytest.approx(0.5)
    assert core.costs(next_one, ["r0"], 2.5)["r0"].wait == 0.0


def test_conversation_waits_for_its_prefix_if_all_replicas_queue():
    """Computing the prefix a second time would delay all other requests."""

    def chosen(**queues):
        core = core_of("r0", "r1")
        known = Hints("base", prefix=chain(1, 2, 3, 4, 5), prompt_tokens=500)
        core.routed("0", "r0", known, 1.0)
        core.completed("0", 2.0)
        for replica, queue in queues.items():
            for i in range(queue):
                more = Hints("base", prompt_tokens=200, streams=True)
                core.routed(f"{replica}{i}", replica, more, 3.0)
        return core.ranked(known, ["r0", "r1"], 3.0)[0]

    # Elsewhere it takes 0.5 s, here 0.2 s for each request ahead of it.
    assert chosen(r0=2, r1=0) == "r0"
    assert chosen(r0=4, r1=0) == "r1"
    assert chosen(r0=14, r1=1) == "r0"
    assert chosen(r0=18, r1=1) == "r1"


def test_busy_replica_is_not_considered_slow():
    """Its time per output token is long only because of other requests' prefills."""
    core = core_of("r0", "r1")
    core.report("r0", {"output_token": 5.0}, 1.0)
    hints = Hints("base", prompt_tokens=100)
    costs = core.costs(hints, ["r0", "r1"], 1.0)
    assert costs["r0"] == costs["r1"]


def test_equal_replicas_are_filled_evenly():
    core = core_of("r0", "r1")
    for i in range(8):
        hints = Hints("base", prefix=chain(("own", i)), prompt_tokens=100)
        name = core.ranked(hints, ["r0", "r1"], 10.0 * i)[0]
        assert name == f"r{i % 2}"
        core.routed(str(i), name, hints, 10.0 * i)
        core.completed(str(i), 10.0 * i + 1)


def test_replicas_that_failed_a_request_are_last():
    core = core_of("r0", "r1")
    core.report("r0", {"resident": ["cats"]}, 1.0)
    assert core.ranked(Hints("cats", prompt_tokens=10, avoid=("r0",)), ["r0", "r1"], 1.0) == [
        "r1",
        "r0",
    ]


def test_slow_and_hanging_replicas_are_avoided():
    core = core_of("r0", "r1")
    core.report("r0", {"prefill_token": 0.01}, 1.0)
    assert core.ranked(Hints("base", prompt_tokens=100), ["r0", "r1"], 1.0)[0] == "r1"
    for i in range(200):  # idle since then: whatever made it slow may be over
        core.report("r0", {}, 2.0 + i)
    assert core.costs(Hints("base", prompt_tokens=100), ["r0"], 300.0)[
        "r0"
    ].prefill == pytest.approx(0.1, rel=0.1)
    core.routed("1", "r0", Hints("base", prompt_tokens=100), 300.0)
    assert core.ranked(Hints("base", prompt_tokens=100), ["r0", "r1"], 310.0)[0] == "r1"


def test_new_replica_is_assumed_to_be_average():
    core = CostCore()
    core.set_replicas(["r0", "r1"])
    for name in ("r0", "r1"):
        core.report(
            name, {"prefill_token": 1e-6, "output_token": 1e-6, "base_names": ["base"]}, 1.0
        )
    core.routed("1", "r0", Hints("base", prompt_tokens=100), 1.0)
    core.routed("2", "r1", Hints("base", prompt_tokens=100), 1.0)
    core.set_replicas(["r0", "r1", "r2"])
    assert core.ranked(Hints("base", prompt_tokens=100), ["r0", "r1", "r2"], 1.0)[0] == "r2"


def test_prefixes_are_forgotten_from_their_ends():
    recent = Recent(300)
    recent.use_chain(chain(1, 2, 3))
    assert recent.matched(chain(1, 2, 3, 4)) == 300
    recent.use_chain(chain(8))
    assert recent.matched(chain(1, 2, 3)) == 200
    assert recent.matched(chain(8)) == 100


def chat_body(*messages, model="m", **more):
    import json

    return json.dumps({"model": model, "messages": list(messages), **more}).encode()


def test_hints_are_read_from_bodies():
    user = {"role": "user", "content": "x" * 1200}
    one = read_body("/v1/chat/completions", chat_body(user, max_tokens=7, stream=True))
    assert one.stream and one.hints.model == "m" and one.hints.answer_tokens == 7
    assert one.hints.prompt_tokens == pytest.approx(300, abs=10)
    answer, more = {"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}
    two = read_body("/v1/chat/completions", chat_body(user, answer, more)).hints
    assert two.prefix[: len(one.hints.prefix)] == one.hints.prefix and len(two.prefix) > len(
        one.hints.prefix
    )
    for changed in ({"model": "n"}, {"cache_salt": "s"}, {"lora": [{"name": "a", "scale": 0.5}]}):
        other = read_body("/v1/chat/completions", chat_body(user, **changed)).hints
        assert not set(other.prefix) & set(two.prefix)
    assert read_body(
        "/v1/chat/completions", chat_body(user, lora=["a", {"name": "b"}])
    ).hints.adapters == ("a", "b")


def test_pictures_are_part_of_the_prefix():
    def hints(url):
        parts = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": "What is it?"},
        ]
        return read_body(
            "/v1/chat/completions", chat_body({"role": "user", "content": parts})
        ).hints

    first, again, other = (
        hints("data:image/png;base64,AAAA"),
        hints("data:image/png;base64,AAAA"),
        hints("data:,BBBB"),
    )
    assert first == again and len(first.media) == 1
    assert first.prefix[-1] != other.prefix[-1] and first.media != other.media


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"messages": 3, "prompt": {}}',
        b'{"model": 1, "lora": 5}',
        b'{"messages": [1, {"content": [2, {"text": 3, "image_url": []}]}]}',
    ],
)
def test_malformed_bodies_give_no_hints(body):
    assert read_body("/v1/chat/completions", body).hints.model == ""


def test_baseline_policies_choose_as_documented():
    names = ["r0", "r1", "r2"]
    turn = RoundRobinCore()
    turn.set_replicas(names)
    assert len({turn.ranked(Hints(), names, 0.0)[0] for _ in range(3)}) == 3
    two = PowerOfTwoCore()
    two.set_replicas(names)
    two.queue.update(r0=5, r1=9, r2=9)
    assert {two.ranked(Hints(), names, 0.0)[0] for _ in range(50)} == {"r0", "r1", "r2"}
    prefix = PrefixCore()
    prefix.set_replicas(names)
    prefix.routed("1", "r1", Hints(prefix=chain(1, 2)), 0.0)
    assert prefix.ranked(Hints(prefix=chain(1, 2, 3)), names, 0.0) == ["r1"]
    assert "r1" not in prefix.ranked(Hints(prefix=chain(7)), names, 0.0)


@pytest.fixture(scope="module")
def results():
    """8 replicas and 2,000 adapters drawn from a power law, near the highest load that power of two
    choices can carry."""
    requests = conversations(synthetic(3000, 45.0))
    return {
        name: simulate(requests, core)
        for name, core in (
            ("cost", CostCore()),
            ("two", PowerOfTwoCore()),
            ("turns", RoundRobinCore()),
            ("prefix", PrefixCore()),
        )
    }


def test_ttft_is_half_that_of_power_of_two_choices(results):
    ours, two = results["cost"], results["two"]
    assert ours.quantile(0.99) <= 0.5 * two.quantile(0.99)
    assert ours.quantile(0.5) < two.quantile(0.5)
    assert ours.throughput >= 0.99 * two.throughput
    assert ours.quantile(0.99) < results["prefix"].quantile(0.99)


def test_cost_routing_has_more_adapter_and_prefix_hits(results):
    def hits(result):
        return result.adapter_hits / result.adapter_asked, result.prefix_hits / result.prefix_asked

    for other in ("two", "turns"):
        assert hits(results["cost"])[0] > 1.5 * hits(results[other])[0]
        assert hits(results["cost"])[1] > 2 * hits(results[other])[1]
    assert results["cost"].balance < 1.15


def test_popular_adapters_spread_and_rare_ones_do_not(results):
    placed = results["cost"].placed
    assert len(placed["a0"]) >= 4
    rare = [len(where) for name, where in placed.items() if int(name[1:]) > 500]
    assert sum(rare) / len(rare) < 1.3


def test_slow_replica_raises_tail_latency_less_than_power_of_two():
    requests = conversations(synthetic(1500, 30.0))
    ours = simulate(requests, CostCore(), slow={0: 4.0})
    two = simulate(requests, PowerOfTwoCore(), slow={0: 4.0})
    assert ours.quantile(0.99) < 0.5 * two.quantile(0.99)


def test_simulation_completes_every_request():
    requests = conversations(synthetic(200, 20.0))
    result = simulate(
        requests, RoundRobinCore(), replicas=2, machine=Machine(sequences=4, adapters=2)
    )
    assert len(result.ends) == len(result.first_tokens) == 200
    assert min(result.first_tokens) > 0
