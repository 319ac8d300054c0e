"""`valora doctor` and `valora --version`: what a report of a fault needs."""

import json
import os
import re
import subprocess

import pytest

from programs import REPOSITORY, find_program


def run(*words, **variables):
    return subprocess.run([find_program("valora"), *words], capture_output=True, text=True, timeout=60, env=os.environ | variables)


def test_the_version_names_commit_torch_and_instruction_sets():
    version = re.search(r"VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text().split("project(valora", 1)[1])[1]
    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"valora {version}"
    assert re.fullmatch(r"commit ([0-9a-f]{12}(\+changes)?|unknown)", lines[1])
    assert re.fullmatch(r"torch \d+\.\d+\.\d+", lines[2])
    assert re.fullmatch(r"instruction set (\w+), of (\w+, )*portable", lines[3])
    assert run("--version", VALORA_ISA="portable").stdout.splitlines()[3].startswith("instruction set portable, of")


def test_the_report_as_an_object():
    report = json.loads(run("doctor", "--json", "--seconds", "0.1", VALORA_API_KEY="a-secret", OMP_NUM_THREADS="1").stdout)
    assert report["cpu"]["instruction_set"] in report["cpu"]["instruction_sets"]
    assert 1 <= report["cpu"]["usable_cores"] <= report["cpu"]["cpus"]
    assert report["memory"]["available"] > 0 and "limit" in report["memory"]
    assert {"FFmpeg", "libheif", "torch", "curl"} <= set(report["libraries"]) and all(report["libraries"].values())
    assert report["environment"]["OMP_NUM_THREADS"] == "1"
    assert "a-secret" not in json.dumps(report)
    speed = report["speed"]
    assert speed["threads"] == 1
    # Between a slow emulator and any machine there is.
    assert all(1e6 < speed[name] < 1e14 for name in speed if name.endswith("_per_second"))


def test_the_report_as_text():
    done = run("doctor", "--seconds", "0")
    assert done.returncode == 0 and "speed" not in done.stdout
    for name in ("system", "cpu", "instructions", "cores", "CPU quota", "memory", "GPU", "libraries", "environment"):
        assert re.search(rf"^  {name} +\S", done.stdout, re.MULTILINE), name


@pytest.mark.parametrize("words", [["--seconds", "-1"], ["--seconds", "many"]])
def test_bad_times_are_errors(words):
    assert run("doctor", *words).returncode != 0


def test_an_unknown_instruction_set_is_an_error():
    done = run("doctor", "--seconds", "0", VALORA_ISA="sse9")
    assert done.returncode == 1 and "sse9" in done.stderr
