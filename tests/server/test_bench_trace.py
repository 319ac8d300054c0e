"""`valora tune --cost` and `valora bench trace`: costs are measured, used, and compared with the times of a
run."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from programs import find_program
from serving import ServedProcess, Server
from wide import EVERYTHING

DEMO = pathlib.Path(__file__).parents[2] / "demo" / "model"


def run(*arguments, check=True, **environment):
    done = subprocess.run([find_program("valora"), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=os.environ | environment)
    assert not check or done.returncode == 0, done.stderr
    return done


def trace(*arguments, **environment):
    rows = json.loads(run("bench", "trace", "--json", *arguments, **environment).stdout)
    return {(row["skewness"], row["policy"]): row for row in rows}


@pytest.fixture(scope="module")
def cache(folders, tmp_path_factory):
    """The cache folder in which `tune --cost` stored the costs of the tiny model."""
    folder = tmp_path_factory.mktemp("cache")
    done = run("tune", "--cost", "--model", folders["model"], "--threads", 1, "--seconds", 4, XDG_CACHE_HOME=str(folder))
    assert "error on" in done.stdout and str(folder) in done.stdout
    return folder


def costs_file(cache):
    (file,) = (cache / "valora").glob("costs-*.json")
    return file


def test_costs_are_measured_and_saved(cache):
    costs = json.loads(costs_file(cache).read_text())
    assert costs["costs"]["step"] > 0
    assert all(value >= 0 for value in costs["costs"].values())
    assert costs["error"]["steps"] > 50
    assert "1 threads" in costs["machine"]


def test_ranks_and_dtypes_have_their_own_costs(folders, cache, tmp_path):
    options = ("--tensor-parallel-size", 5, "--quantization", "int8", "--kv-cache-dtype", "int8", "--dtype", "bfloat16")
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    run("tune", "--cost", "--model", folders["model"], "--threads", 5, "--seconds", 1, *options, XDG_CACHE_HOME=str(tmp_path))
    (file,) = set((tmp_path / "valora").glob("costs-*.json")) - {tmp_path / "valora" / costs_file(cache).name}
    made = json.loads(file.read_text())
    assert "5 ranks of 1 threads" in made["machine"] and "bits each, KV in int8" in made["model"]
    for file_used, more in ((True, options), (False, options[2:])):
        server = ServedProcess("--model", str(folders["model"]), "--threads", "5", "--scheduling-policy", "valora", *map(str, more),
                               env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
        server.stop()
        log = "".join(server.welcome)
        assert (f"costs of steps: {file}" in log) == file_used, log


def test_tuned_tiles_cover_the_product_shapes_of_ranks(folders, tmp_path):
    common = ("tune", "--model", folders["model"], "--seconds", 0.01, "--ranks", 8, "--max-tokens", 4)
    sizes = [re.search(r"shapes of (\d+) sizes", run(*common, "--output", tmp_path / f"{ranks}.json", "--tensor-parallel-size", ranks).stdout)[1]
             for ranks in (1, 5)]
    assert sizes[0] != sizes[1]
    refused = run(*common, "--kv-cache-dtype", "int8", check=False)
    assert refused.returncode == 1 and "need --cost" in refused.stderr
    assert "do not divide evenly" in run(*common, "--tensor-parallel-size", 64, check=False).stderr


WORKLOAD = ("--adapters", 2, "--rate", 20, "--seconds", 2, "--prompt-min", 4, "--prompt-max", 20, "--answer-min", 2,
            "--answer-max", 8, "--skewness", "0.3,0.9")


@pytest.mark.skipif(not EVERYTHING, reason="in make conformance")
def test_rival_systems_run_on_an_engine(folders, cache, tmp_path):
    for name in ("one", "two"):
        os.symlink(folders[name], tmp_path / name)
    systems = ("valora", "dLoRA system", "Punica system", "S-LoRA system")
    rows = trace("--model", folders["model"], "--lora-dir", tmp_path, "--threads", 1, "--pool-memory", "64M", "--dtype",
                 "bfloat16", "--policies", ",".join(systems), *WORKLOAD, XDG_CACHE_HOME=str(cache))
    assert set(rows) == {(skewness, system) for skewness in (0.3, 0.9) for system in systems}
    for row in rows.values():
        assert row["failed"] == 0 and row["answers"] > 10
        assert row["over_first_at_costs_speed"] == row["over_first"]


@pytest.mark.skipif(not EVERYTHING, reason="in make conformance")
def test_trace_on_an_engine_agrees_with_the_simulation(folders, cache, tmp_path):
    for name in ("one", "two"):
        os.symlink(folders[name], tmp_path / name)
    rows = trace("--model", folders["model"], "--lora-dir", tmp_path, "--threads", 1, "--pool-memory", "64M",
                 "--policies", "valora,unmerged,dlora", "--rounds", 2, "--fit-costs", tmp_path / "fitted.json", *WORKLOAD,
                 XDG_CACHE_HOME=str(cache))
    assert set(rows) == {(skewness, policy) for skewness in (0.3, 0.9) for policy in ("valora", "unmerged", "dlora")}
    for row in rows.values():
        assert row["failed"] == 0 and row["answers"] > 10
        assert row["attainment"] == 1
        assert 0 < row["token_latency_seconds"] < 1
        assert row["ttft_seconds"]["p50"] <= row["ttft_seconds"]["p99"]
        assert len(row["token_latency_rounds"]) == 2
        assert 0 < row["over_first"] < 100 and 0 < row["over_first_at_costs_speed"] < 100
    assert rows[0.3, "unmerged"]["answers"] == rows[0.3, "valora"]["answers"]
    assert rows[0.9, "unmerged"]["merges"] == 0
    assert rows[0.9, "valora"]["over_first"] == 1
    simulated = trace("--simulate", tmp_path / "fitted.json", "--policies", "valora,unmerged,dlora", *WORKLOAD)
    for key, row in rows.items():
        assert simulated[key]["answers"] == row["answers"]
        assert 0.2 < simulated[key]["tpot_seconds"]["mean"] / row["tpot_seconds"]["mean"] < 5


def test_trace_is_simulated_with_measured_costs(cache):
    first, second = (trace("--simulate", costs_file(cache), "--policies", "valora,merged", *WORKLOAD) for _ in range(2))
    assert first == second
    assert first[0.9, "merged"]["merges"] > 0


def test_rival_systems_are_simulated_with_published_costs():
    rows = trace("--simulate", "a100", "--rate", 4, "--seconds", 20, "--adapters", 8, "--answer-max", 60, "--skewness", "0.5")
    systems = {policy for _, policy in rows}
    assert {"valora", "unmerged", "merged", "mixture", "dlora", "vllm", "dLoRA system", "Punica system", "S-LoRA system"} == systems
    assert rows[0.5, "valora"]["token_latency_seconds"] < rows[0.5, "dLoRA system"]["token_latency_seconds"]


def test_recorded_trace_is_replayed(tmp_path):
    rows = ["2023-11-16 18:15:46.6805900,37,4", "2023-11-16 18:15:47.1805900,20,2", "2023-11-16 18:15:48.6805900,9,6"]
    file = tmp_path / "trace.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows) + "\n")
    (row,) = trace("--simulate", "a100", "--trace", file, "--rate", 1, "--seconds", 30, "--policies", "unmerged").values()
    assert (row["answers"], row["failed"]) == (30, 0)
    file.write_text(file.read_text() + "not a row\n")
    assert f"{file}:5" in run("bench", "trace", "--simulate", "a100", "--trace", file, check=False).stderr


def rows_of(*arguments):
    return json.loads(run("bench", "trace", "--json", *arguments).stdout)


def test_conversations_hit_the_prefix_cache():
    with_cache, without = rows_of("--simulate", "a100", "--application", "retrieval", "--seconds", 30, "--adapters", 4,
                                  "--answer-max", 60, "--policies", "valora,valora without prefix cache")
    assert with_cache["failed"] == without["failed"] == 0
    assert with_cache["answers"] == without["answers"] > 100
    assert with_cache["ttft_seconds"]["mean"] < without["ttft_seconds"]["mean"]


def test_head_answers_camera_requests_sooner_than_the_language_model():
    cameras = ("--simulate", "a100", "--application", "video", "--cameras", "2,20", "--seconds", 20, "--adapters", 2,
               "--policies", "valora")
    head = rows_of(*cameras, "--answer-min", 1, "--answer-max", 1)
    words = rows_of(*cameras, "--answer-min", 5, "--answer-max", 10)
    assert [(row["cameras"], row["rate"], row["answers"]) for row in head] == [(2, 2, 40), (20, 20, 400)]
    assert all(one["ttft_seconds"]["mean"] < several["ttft_seconds"]["mean"] for one, several in zip(head[1:], words[1:]))


def test_skills_with_activated_adapters_share_their_frame():
    skills = ("--simulate", "a100", "--application", "video", "--cameras", 2, "--frames", 1, "--seconds", 20, "--adapters", 8,
              "--skills", "1,8", "--answer-min", 8, "--answer-max", 8, "--policies", "valora,unmerged,merged")
    plain, activated = rows_of(*skills), rows_of(*skills, "--activated")
    assert [(row["skills"], row["rate"], row["answers"]) for row in activated[::3]] == [(1, 2, 40), (8, 16, 320)]
    assert all(row["failed"] == 0 for row in plain + activated)
    assert all(one["token_latency_seconds"] < other["token_latency_seconds"] for one, other in zip(activated[3:], plain[3:]))


def test_closed_loop_never_has_more_requests_than_clients():
    (row,) = rows_of("--simulate", "a100", "--clients", 1, "--rate", 50, "--seconds", 2, "--policies", "unmerged")
    assert row["ttft_seconds"]["p99"] < 0.1  # no request waits for another


def test_timeline_shows_a_load_shift():
    (row,) = rows_of("--simulate", "a100", "--policies", "valora", "--rate", 8, "--seconds", 40, "--rank", 64,
                     "--prompt-max", 300, "--answer-max", 100, "--phases", "1,0.1", "--timeline", 20)
    first, second = (interval["mode_seconds"] for interval in row["timeline"]["intervals"][:2])
    assert first["merged"] > first["unmerged"] + first["mixture"]
    assert second["merged"] < second["unmerged"] + second["mixture"]
    assert len(row["timeline"]["writes"]) == row["merges"]


def test_picture_requests_run_on_an_engine():
    rows = rows_of("--model", DEMO, "--threads", 1, "--pool-memory", "256M", "--adapters", 0, "--application", "retrieval",
                   "--rate", 4, "--seconds", 1, "--think", 0.01, "--picture-size", 56, "--prompt-min", 2, "--prompt-max", 4,
                   "--answer-min", 2, "--answer-max", 4, "--policies", "valora,unmerged", "--timeline", 1)
    for row in rows:
        assert row["failed"] == 0 and row["answers"] > 3
        assert sum(interval["steps"] for interval in row["timeline"]["intervals"]) > row["answers"]


@pytest.fixture(scope="module")
def servers(folders):
    plain = {name: folders[name] for name in ("model", "one", "two")}
    running = [Server(plain), Server(plain, "--mode", "merged")]
    yield running
    for server in running:
        server.stop()


@pytest.mark.skipif(not EVERYTHING, reason="in make conformance")
def test_same_workload_runs_on_several_servers(servers):
    first, second = (server.url for server in servers)
    rows = trace("--url", f"plain={first},merged={second}", "--rounds", 2, *WORKLOAD)
    assert set(rows) == {(skewness, name) for skewness in (0.3, 0.9) for name in ("plain", "merged")}
    for row in rows.values():
        assert row["failed"] == 0 and row["answers"] > 10
        assert 0 < row["ttft_seconds"]["p50"] <= row["ttft_seconds"]["p99"]
    assert rows[0.3, "plain"]["answers"] == rows[0.3, "merged"]["answers"]


def test_conversations_include_the_servers_answers(servers):
    server = servers[0]
    before = server.metric("vllm:prefix_cache_hits_total")
    (row,) = rows_of("--url", server.url, "--application", "retrieval", "--adapters", 1, "--rate", 4, "--seconds", 1, "--think",
                     0.01, "--picture-size", 56, "--prompt-min", 30, "--prompt-max", 40, "--answer-min", 20, "--answer-max", 24)
    assert row["failed"] == 0 and row["answers"] > 3
    assert row["policy"] == server.url
    assert server.metric("vllm:prefix_cache_hits_total") > before


def test_refusing_and_unreachable_servers_are_reported(servers):
    url = servers[0].url
    assert "has 2 adapters" in run("bench", "trace", "--url", url, "--adapters", 9, check=False).stderr
    assert "could not connect" in run("bench", "trace", "--url", "x=http://127.0.0.1:1", check=False).stderr
    rows = rows_of("--url", url, "--adapters", 1, "--rate", 5, "--seconds", 1, "--prompt-min", 5000, "--prompt-max", 5000)
    assert rows[0]["answers"] == 0 and rows[0]["failed"] > 0


@pytest.mark.parametrize("arguments, named", [
    (["--url", "http://127.0.0.1:1", "--simulate", "a100"], "--simulate"),
    (["--url", "http://127.0.0.1:1", "--policies", "valora"], "--policies"),
    (["--url", "http://127.0.0.1:1", "--timeline", 1], "--timeline"),
    ([], "--model"),
    (["--model", "MODEL"], "--lora-dir"),
    (["--model", "MODEL", "--adapters", 0, "--policies", "dLoRA system", "--dtype", "float32"], "--dtype bfloat16"),
    (["--model", "MODEL", "--adapters", 0, "--policies", "dLoRA system", "--kernels", "reference"], "--kernels native"),
    (["--model", "MODEL", "--adapters", 0, "--policies", "S-LoRA system", "--fit-costs", "costs.json"], "--fit-costs"),
    (["--simulate", "nowhere.json"], "nowhere.json"),
    (["--simulate", "a100", "--rate", 0], "rate"),
    (["--simulate", "a100", "--application", "video", "--clients", 2], "--clients"),
    (["--simulate", "a100", "--application", "radio"], "radio"),
    (["--simulate", "a100", "--skills", 2], "--application video"),
    (["--simulate", "a100", "--application", "video", "--adapters", 2, "--skills", 3], "skills"),
    (["--model", "MODEL", "--adapters", 0, "--application", "video", "--activated"], "--simulate"),
    (["--simulate", "a100", "--phases", "0.5,2"], "phases"),
    (["--model", "MODEL", "--adapters", 0, "--replicas", 2], "--simulate"),
    (["--simulate", "a100", "--fit-costs", "costs.json"], "--fit-costs"),
])
def test_impossible_settings_are_named(folders, arguments, named):
    arguments = [folders["model"] if word == "MODEL" else word for word in arguments]
    done = run("bench", "trace", *arguments, check=False)
    assert done.returncode != 0 and named in done.stderr


def test_costs_of_another_model_are_refused(folders, cache, tmp_path):
    costs = json.loads(costs_file(cache).read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps(costs | {"model": "another one"}))
    done = run("generate", "--model", folders["model"], "--prompt", "x", "--threads", 1, "--scheduling-policy", "valora",
               "--costs", other, check=False)
    assert done.returncode != 0 and "the file is for the model another one" in done.stderr
