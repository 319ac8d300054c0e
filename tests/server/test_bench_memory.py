"""`valora bench memory` and `memory-live`: the pool against its rivals, simulated and on an engine."""

import json
import os
import subprocess

import pytest

from programs import find_program

VARIANTS = ["whole", "benefit", "no dependencies", "no reward", "lru", "fixed share", "no history"]


def run(*arguments):
    done = subprocess.run([find_program("valora"), "bench", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    file = tmp_path_factory.mktemp("simulated") / "memory.json"
    file.write_text(run("memory", "--json", "--peak", "--applications", "chat", "--adapters", 50, "--seconds", 40, "--popularity",
                        "uniform"))
    return file


@pytest.fixture(scope="module")
def live(folders, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    adapters = folder / "adapters"
    adapters.mkdir()
    for name in ("one", "two"):
        os.symlink(folders[name], adapters / name)
    file = folder / "live.json"
    file.write_text(run("memory-live", "--json", "--model", folders["model"], "--threads", 1, "--lora-dir", adapters, "--adapters",
                        2, "--pool-memory", "16M", "--max-model-len", 1024, "--applications", "translation", "--rate", "12,6", "--seconds", 3, "--rounds", 2,
                        "--variants", "whole,no history"))
    return file


def test_simulated_pool_reports_every_variant(simulated):
    (scenario,) = json.loads(simulated.read_text())["scenarios"]
    assert [one["variant"] for one in scenario["runs"]] == VARIANTS
    runs = {one["variant"]: one for one in scenario["runs"]}
    assert all(one["failed"] == 0 and 0 < one["ttft_seconds"] <= one["ttft_p99_seconds"] for one in runs.values())
    assert runs["whole"]["peak_rate"] > runs["no history"]["peak_rate"] > 0
    assert runs["whole"]["kv_hits"] > 0.3 and runs["no history"]["kv_hits"] == 0


def test_pool_on_an_engine_reports_every_variant(live):
    scenarios = json.loads(live.read_text())
    assert [scenario["rate"] for scenario in scenarios] == [6, 12]
    for scenario in scenarios:
        assert [one["variant"] for one in scenario["runs"]] == ["whole", "no history"]
        for one in scenario["runs"]:
            assert one["failed"] == 0 and 0 < one["ttft_seconds"] <= one["ttft_p99_seconds"]
            assert 0 <= one["peak_rate"] <= 12
    assert scenarios[1]["runs"][0]["adapter_hits"] > 0.5
