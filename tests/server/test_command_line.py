"""`valora bench serve` against a running server, `valora inspect`, and the demo's own folders and driver."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from programs import REPOSITORY, find_program
from serving import LABELS, Server

DEMO = REPOSITORY / "demo"
needs_demo = pytest.mark.skipif(not (DEMO / "samples.json").exists(), reason="the demo is not there")


def run(*arguments):
    return subprocess.run([find_program("valora"), *map(str, arguments)], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def server(folders):
    server = Server(folders)
    yield server
    assert server.stop() == 0


def bench(server, *options):
    done = run("bench", "serve", "--url", server.url, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_bench_counts_as_the_server_does(server):
    before = [server.metric(f"vllm:{kind}_tokens_total") for kind in ("prompt", "generation")]
    report = bench(server, "--num-prompts", 12, "--concurrency", 5, "--input-tokens", 17, "--output-tokens", 9,
                   "--adapter-distribution", "distinct", "--warmup", 3)
    after = [server.metric(f"vllm:{kind}_tokens_total") for kind in ("prompt", "generation")]
    assert [b - a for a, b in zip(before, after)] == [15 * 17, 15 * 9]  # the warm-up is not in the report
    everything = report["all"]
    assert (everything["requests"], everything["failed"], everything["short_answers"]) == (12, 0, 0)
    assert (everything["prompt_tokens"], everything["completion_tokens"]) == (12 * 17, 12 * 9)
    assert everything["itl_seconds"]["count"] == 12 * 8
    assert {name: group["requests"] for name, group in report["models"].items()} == {"one": 3, "two": 3, "three": 3, "five": 3}
    assert 0 < everything["ttft_seconds"]["mean"] < everything["e2e_seconds"]["mean"]


def test_bench_counts_images_in_an_open_loop(server):
    options = ("--num-prompts", 6, "--request-rate", 50, "--images", 2, "--image-size", "40x24", "--input-tokens", "5:9",
               "--output-tokens", 4, "--models", "tiny,five")
    report = bench(server, *options)
    assert report["all"]["completion_tokens"] == 24
    assert set(report["models"]) <= {"tiny", "five"}
    hits = server.metric("vllm:mm_cache_hits_total")
    bench(server, *options, "--seed", 1, "--repeat-images", "--image-format", "png", "--no-stream")
    assert server.metric("vllm:mm_cache_hits_total") - hits == 2 * 5  # only the first request misses both


def test_bench_names_errors(server):
    unknown = run("bench", "serve", "--url", server.url, "--models", "one,nobody", "--adapter-distribution", "distinct", "--num-prompts", 4,
                  "--json")
    assert unknown.returncode == 0
    assert json.loads(unknown.stdout)["all"]["errors"] == {"HTTP 404: The model `nobody` does not exist.": 2}
    for options, words in ((("--models", "nobody"), "`nobody` does not exist"), (("--output-tokens", 5000), "but the model takes at most 1024"),
                           (("--input-tokens", "x"), "--input-tokens"), (("--adapter-distribution", "normal"), "zipf:S")):
        refused = run("bench", "serve", "--url", server.url, *options)
        assert refused.returncode == 1 and refused.stderr.startswith("error: ") and words in refused.stderr, refused


def test_bench_reports_an_unreachable_server():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening
        done = run("bench", "serve", "--url", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 1 and "could not connect" in done.stderr


def test_bench_is_a_program_in_the_same_folder_or_on_the_path(tmp_path):
    program, path = tmp_path / "bin" / "valora", tmp_path / "path"
    for folder in (program.parent, path):
        folder.mkdir()
    shutil.copy(find_program("valora"), program)

    def ask(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=os.environ | {"PATH": str(path)}, timeout=60)

    missing = ask("bench", "ops")
    assert missing.returncode == 1 and missing.stderr.startswith("error: ")
    assert all(words in missing.stderr for words in (str(program.parent / "valora-bench"), "PATH", "`make bench`"))
    for folder in (path, program.parent):
        script = folder / "valora-bench"
        script.write_text(f'#!/bin/sh\necho {folder.name} "$@"\n')
        script.chmod(0o755)
        assert ask("--log-level", "error", "bench", "trace", "--help").stdout == f"{folder.name} --log-level error trace --help\n"


def test_flags_of_other_servers_are_accepted_or_get_suggestions():
    done = run("serve", "nowhere", "--enable-lora", "--max-model-len", "2k", "--log-level", "info")
    assert done.returncode == 1 and "--enable-lora: adapters are always enabled" in done.stderr and "nowhere" in done.stderr
    done = run("serve", "nowhere", "--max-model-length", "5", "--enable-loras")
    lines = [line for line in done.stderr.splitlines() if "unknown option" in line]
    assert done.returncode != 0 and len(lines) == 2, done.stderr
    assert "--max-model-len?" in lines[0] and "--enable-lora?" in lines[1]


def test_a_video_decoder_that_cannot_be_had_is_refused():
    for decoder, words in (("nonsense", '"nonsense" is not known'), ("vaapi:/dev/no-such-device", "vaapi:/dev/no-such-device cannot be opened")):
        done = run("serve", "nowhere", "--video-decoder", decoder)
        assert done.returncode == 1 and words in done.stderr and "the decoders here are software, auto" in done.stderr, done.stderr


@pytest.mark.parametrize("command", ["serve", "generate", "inspect", "eval", "fuse", "quantize", "tune"])
def test_unknown_options_are_named_before_their_values(command):
    done = run(command, "--model", "nowhere", "--lora-target-modules", "qkv_proj")
    assert done.returncode != 0 and done.stderr.startswith("error: unknown option --")
    assert "error: unknown option --lora-target-modules" in done.stderr
    assert "qkv_proj" not in done.stderr


def test_options_are_read_from_a_file(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("model: nowhere\nenable-lora: true\nmax-model-len: 2k\nlora-modules: [a=one]\n")
    done = run("serve", "--config", file)
    assert done.returncode == 1 and "--enable-lora: adapters are always enabled" in done.stderr and "nowhere" in done.stderr
    file.write_text("model: nowhere\nmax-model-length: 5\n")
    done = run("serve", "--config", file)
    assert done.returncode == 1 and f"{file}:2: unknown option --max-model-length; did you mean --max-model-len?" in done.stderr


def inspect(*arguments):
    done = run("inspect", *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def test_inspect_accepts_supported_folders(folders):
    status, model = inspect(folders["model"])
    assert (status, model["kind"], model["servable"], model["problems"]) == (0, "model", True, [])
    assert model["stored"]["bytes"] == model["stored"]["parameters"] * 4 and model["images"] and model["videos"]
    status, adapter = inspect(folders["three"], "--model", folders["model"])
    assert (status, adapter["kind"], adapter["servable"]) == (0, "adapter", True)
    assert [head["labels"] for head in adapter["heads"]] == [LABELS["three"]]
    assert {target["rank"] for target in adapter["targets"]} == {4}
    assert inspect(folders["three"])[1]["heads"] == adapter["heads"]


def test_inspect_explains_refusals(folders, tmp_path):
    copy = shutil.copytree(folders["model"], tmp_path / "model")
    config = json.loads((copy / "config.json").read_text())
    config["architectures"] = ["MptForCausalLM"]
    (copy / "config.json").write_text(json.dumps(config))
    status, report = inspect(copy)
    assert status == 1 and "MptForCausalLM is not supported" in report["problems"][0]
    status, report = inspect(folders["two"], "--model", folders["model"], "--max-lora-rank", 8)
    assert status == 1 and "rank 16 is above" in report["problems"][0]
    nothing = run("inspect", tmp_path)
    both = run("inspect", copy, folders["model"])
    assert both.returncode == 1 and both.stdout.startswith(f"{copy}:\n") and f"\n\n{folders['model']}:\n" in both.stdout
    assert nothing.returncode == 1 and not nothing.stdout and "neither a model" in nothing.stderr


def test_path_without_a_model_gives_a_one_line_error(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    files = {"model.gguf": b"GGUF\x03\0\0\0", "model.zip": b"PK\x03\x04", "model.safetensors": b"{}"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    shutil.copytree(folders["model"], tmp_path / "pickled", ignore=shutil.ignore_patterns("*.safetensors*"))
    (tmp_path / "pickled" / "pytorch_model.bin").touch()
    cases = {"org/name": "org/name is no folder here and not in the cache ",
             tmp_path / "model.zip": "is an archive: unpack it", tmp_path / "model.safetensors": "is a file of weights: give the folder",
             tmp_path / "none": "does not exist"}
    adapter = {folders["one"]: "is an adapter: give the folder of its base model",
               tmp_path / "model.gguf": "model.gguf: the header ends beyond the file's 8 bytes (truncated?)"}
    pickled = {tmp_path / "pickled": "save it with save_pretrained()"}
    for command in (["serve", "--port", 0], ["generate", "--prompt", "x", "--model"], ["inspect"]):
        for path, words in (cases | (adapter if command != ["inspect"] else {}) | (pickled if command != ["inspect"] else {})).items():
            done = run(*command, path)
            assert done.returncode == 1 and not done.stdout, (command, path)
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            assert len(errors) == 1 and words in errors[0], (command, path, done.stderr)


@needs_demo
def test_every_folder_of_the_demo_can_be_served():
    assert inspect(DEMO / "model")[0] == 0
    for adapter in (DEMO / "adapters").iterdir():
        assert inspect(adapter, "--model", DEMO / "model")[1]["problems"] == [], adapter


def demo_command(port):
    manifest = DEMO / "manifest.json"
    modules = ["--manifest", manifest] if manifest.exists() else \
        ["--lora-modules", *(f"{adapter.name}={adapter}" for adapter in sorted((DEMO / "adapters").iterdir()))]
    return [str(part) for part in (
        sys.executable, REPOSITORY / "tools/demo/show.py", "--port", port, "--",
        find_program("valora"), "--log-level", "warning", "serve", "--model", DEMO / "model",
        "--served-model-name", "valora-demo", "--port", port, "--threads", "1", "--allowed-local-media-path", DEMO, *modules)]


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return str(port)


@needs_demo
def test_demo_asks_every_sample_and_exits(free_port):
    command = demo_command(free_port)
    command.insert(2, "--oneshot")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    samples = len(json.loads((DEMO / "samples.json").read_text()))
    assert f"{samples} of {samples} requests answered" in done.stdout
    right, asked = map(int, re.search(r"adapters (\d+) of (\d+)", done.stdout).groups())
    assert right > 0.88 * asked, done.stdout  # CPUs round differently, which may turn an answer or two


@needs_demo
def test_demo_server_does_not_outlive_the_demo(free_port):
    driver = subprocess.Popen(demo_command(free_port), stdout=subprocess.PIPE, text=True)
    try:
        assert any("Ctrl-C ends" in line for line in driver.stdout)
        taken = subprocess.run(demo_command(free_port), capture_output=True, text=True, timeout=60)
        assert taken.returncode == 1 and "make demo PORT=" in taken.stderr
        driver.send_signal(signal.SIGKILL)
        # The server keeps the pipe open until it exits.
        driver.stdout.read()
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(free_port))) != 0
