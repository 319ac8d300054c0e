"""Steps captured before they are needed, at start and while the engine is idle, on the emulated GPU
(docs/rooms/compute.md, captured steps)."""

import json
import os
import pathlib
import re
import time

import pytest

from checkpoints import save_adapter
from programs import DEVICE, REPOSITORY, Engine
from test_emulated_gpu import expect_the_same_tokens

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")]
NAME = "llama3-scaled"
SMALL = {"dtype": "bfloat16", "device": "cuda", "max_num_seqs": 4, "max_num_batched_tokens": 64}


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))


def request(words, adapter=None, tokens=6):
    return {"tokens": list(range(10, 10 + words)), "adapters": [{"name": adapter}] if adapter else [],
            "sampling": {"max_tokens": tokens, "ignore_eos": True, "temperature": 0, "logprobs": 2}}


def wait_for_captures(engine):
    """Until no capture has been added for a while; returns the counters then."""
    deadline, last, since = time.monotonic() + 60, None, time.monotonic()
    while True:
        stats = engine.stats()
        if stats["captured_steps"] != last:
            last, since = stats["captured_steps"], time.monotonic()
        elif time.monotonic() - since > 1.5:
            return stats
        assert time.monotonic() < deadline, stats
        time.sleep(0.02)


def settled(engine):
    """The counters, a moment after they have changed for the last time: those of a step change after its answers."""
    before = None
    while True:
        stats = {key: value for key, value in engine.stats().items() if key not in ("captured_steps", "gpu")}
        if stats == before and stats["running"] == stats["waiting"] == 0:
            return stats
        before = stats
        time.sleep(0.05)


def replayed_of(engine, requests):
    """The answers to the requests together, how many steps they took, and how many of these were replayed."""
    before = settled(engine)
    answers = engine.batch(requests)
    after = settled(engine)
    return answers, after["steps"] - before["steps"], after["replayed_steps"] - before["replayed_steps"]


@pytest.fixture(scope="module")
def adapter(models, tmp_path_factory):
    return save_adapter(models.memory[NAME], tmp_path_factory.mktemp("ahead") / "a", 796, rank=8, targets="all-linear")


@pytest.fixture(scope="module")
def without(models, adapter):
    """Answers of steps that are launched one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VALORA_BIN_DIR", str(PROGRAMS))
        with Engine(models[NAME], {"VALORA_GPU_CAPTURE": "none"}, **SMALL) as engine:
            engine.load("a", adapter)
            requests = [request(words, use) for use in (None, "a") for words in (1, 5, 20, 40, 60)]
            return requests, [engine.one(each) for each in requests]


def test_first_request_of_any_length_is_replayed(models, adapter, without):
    with Engine(models[NAME], **SMALL) as engine:
        assert any("captured as CUDA graphs" in note for note in engine.model["notes"]), engine.model
        started = wait_for_captures(engine)  # a busy machine leaves some of those at start for later
        assert started["captured_steps"] > 4 and started["steps"] == 0
        for expected_of in (without[0][:5], without[0][5:]):
            if expected_of[0]["adapters"]:
                engine.load("a", adapter)
                assert wait_for_captures(engine)["captured_steps"] > started["captured_steps"]
            for each in expected_of:
                answers, steps, replayed = replayed_of(engine, [each])
                assert (steps, replayed) == (6, 6), each
                expect_the_same_tokens([without[1][without[0].index(each)]], answers)


def test_kind_met_once_is_captured_when_idle(models):
    """Decodes of 40 sequences are no likely kind."""
    together = [request(5, tokens=2)]
    together[0]["sampling"]["n"] = 40
    options = SMALL | {"prefix_caching": False, "max_num_seqs": 64}
    counts = {}
    for capture in ("seen", "all"):
        with Engine(models[NAME], {"VALORA_GPU_CAPTURE": capture}, **options) as engine:
            wait_for_captures(engine)
            first, steps, replayed = replayed_of(engine, together)
            assert replayed < steps
            wait_for_captures(engine)
            again, *counts[capture] = replayed_of(engine, together)
            expect_the_same_tokens(first, again)
    steps, replayed = counts["all"]
    assert replayed == steps, counts
    assert counts["seen"][1] < steps, counts


@pytest.mark.parametrize("capture", ["none", "decode", "seen"])
def test_captures_ahead_are_switched_off(models, capture):
    with Engine(models[NAME], {"VALORA_GPU_CAPTURE": capture}, **SMALL) as engine:
        time.sleep(0.3)
        engine.one(request(5, tokens=2))
        assert wait_for_captures(engine)["captured_steps"] == 0
        assert not any("CUDA graphs" in note for note in engine.model["notes"])


def test_requests_during_captures_are_answered(models, adapter, without):
    """Of several clients, while adapters' kinds are captured."""
    with Engine(models[NAME], {"VALORA_GPU_CAPTURE": "all"}, **SMALL) as engine:
        engine.load("a", adapter)
        for _ in range(2):
            for each, expected in zip(*without, strict=True):
                time.sleep(0.07)  # captures have begun
                expect_the_same_tokens([expected], [engine.one(each)])
        expect_the_same_tokens(without[1], engine.batch(without[0]))


def test_captures_touch_no_kv_and_no_adapter(models, adapter, without):
    """Cached KV and weights in the pool are the same after all captures."""
    with Engine(models[NAME], **SMALL) as engine:
        engine.load("a", adapter)
        conversation = [request(words, use) for use in (None, "a") for words in (40, 60)]
        engine.batch(conversation)
        before, captured = settled(engine), engine.stats()["captured_steps"]
        assert wait_for_captures(engine)["captured_steps"] > captured
        assert settled(engine) == before
        answers = engine.batch(conversation)
        assert engine.stats()["prefix_hits"] > before["prefix_hits"]
    expect_the_same_tokens([without[1][without[0].index(each)] for each in conversation], answers)


@pytest.mark.parametrize("fault", ["refuse:3", "memory"])
def test_failed_capture_ends_nothing(models, tmp_path, without, fault):
    if fault == "memory":  # the first allocation after those of a start without captures
        report = tmp_path / "report.json"
        with Engine(models[NAME], {"VALORA_GPU_CAPTURE": "none", "VALORA_EMULATED_GPU_REPORT": str(report)}, **SMALL):
            pass
        fault = f"memory:{json.loads(report.read_text())['allocations'] + 8}"
    with Engine(models[NAME], {"VALORA_EMULATED_GPU_FAULT": fault}, **SMALL) as engine:
        captured = wait_for_captures(engine)["captured_steps"]
        for each, expected in list(zip(*without, strict=True))[:5]:
            expect_the_same_tokens([expected], [engine.one(each)])
        if fault.startswith("memory"):
            assert captured == 0, "what memory there is, steps need"


def test_captures_take_memory_that_is_kept_for_them(models, adapter, tmp_path):
    """Emulated graphs do not share memory as those of a GPU do, and still take less."""
    used = {}
    for capture in ("none", "all"):
        report = tmp_path / f"{capture}.json"
        with Engine(models[NAME], {"VALORA_GPU_CAPTURE": capture, "VALORA_EMULATED_GPU_REPORT": str(report)}, **SMALL) as engine:
            kept = next(re.search(r"about (\d+) MiB of the GPU's memory are kept", note) for note in engine.model["notes"]
                        if "are kept" in note)
            engine.load("a", adapter)
            engine.one(request(60))
            assert (wait_for_captures(engine)["captured_steps"] > 15) == (capture == "all")
        used[capture] = json.loads(report.read_text())["most_bytes"]
    assert used["none"] < used["all"] < used["none"] + (int(kept[1]) << 20), (used, kept[0])


def test_shutdown_does_not_wait_for_all_captures(models, adapter):
    engine = Engine(models[NAME], **(SMALL | {"max_num_batched_tokens": 512, "max_num_seqs": 64}))
    engine.load("a", adapter)
    time.sleep(0.1)
    missing = engine.stats()["captured_steps"]
    begin = time.monotonic()
    engine.close()
    assert time.monotonic() - begin < 5, missing


@pytest.mark.parametrize("mode", ["mixture", "merged"])
def test_captures_ahead_with_merged_weights(models, adapter, without, mode):
    with Engine(models[NAME], mode=mode, **(SMALL | {"prefix_caching": False})) as engine:
        engine.load("a", adapter)
        expected = [engine.one(each) for each in without[0]]
        wait_for_captures(engine)
        for each, own in zip(without[0], expected, strict=True):
            answers, steps, replayed = replayed_of(engine, [each])
            expect_the_same_tokens([own], answers)
        assert replayed == steps, "the last one's kinds"


def test_ranks_capture_ahead_together(models, adapter):
    answers, collectives = {}, {}
    requests = [request(words, use) for use in (None, "a") for words in (5, 40)]
    for capture in ("none", "all"):
        environment = {"VALORA_EMULATED_GPUS": "2", "VALORA_GPU_CAPTURE": capture}
        with Engine(models[NAME], environment, tensor_parallel_size=2, **SMALL) as engine:
            engine.load("a", adapter)
            captured = wait_for_captures(engine)
            assert (captured["captured_steps"] > 4) == (capture == "all") and captured["collectives"] == 0
            answers[capture] = []
            for each in requests:
                answer, steps, replayed = replayed_of(engine, [each])
                assert replayed == (steps if capture == "all" else 0)
                answers[capture] += answer
            collectives[capture] = settled(engine)["collectives"]
    expect_the_same_tokens(answers["none"], answers["all"])
    assert collectives["all"] == collectives["none"], "those of captures are no steps'"
