"""Command lines that vLLM users copy."""

import json
import shutil
import subprocess

import pytest

from programs import find_program
from serving import ServedProcess

# Spellings, several names, and options without a meaning here.
COPIED = ["--served-model-name", "first", "second", "--max_model_len", "512", "--enable_lora", "--max_lora_rank=64", "--dtype=float",
          "--limit-mm-per-prompt.image", "2", "-tp", "1", "--chat-template-content-format", "openai", "--disable-log-requests",
          "--enable-chunked-prefill", "--enable-tower-connector-lora", "--kv-cache-dtype", "auto", "--pipeline-parallel-size", "1",
          "--data-parallel-size", "1", "--load-format", "auto", "--uvicorn-log-level", "warning", "--lora-dtype", "auto",
          "--scheduling-policy", "fcfs", "--seed", "42", "--threads", "1", "--allowed-origins", '["*"]', "--hf-token", "a-secret",
          "--revision", "main", "--tokenizer-revision", "main"]


def refusal(*options):
    done = subprocess.run([find_program("valora"), "serve", "nowhere", *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done
    return done.stderr


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "stderr"
    with log.open("w") as stderr:
        server = ServedProcess(folders["model"], *COPIED, "--lora-modules", f"one={folders['one']}", log_level="info", stderr=stderr)
    server.log = log
    yield server
    assert server.stop() == 0


def test_every_served_name_answers(served):
    _, text = served.request("GET", "/v1/models")
    assert [card["id"] for card in json.loads(text)["data"]] == ["first", "second", "one"]
    assert {card["parent"] for card in json.loads(text)["data"]} == {None, "first"}
    for name, shown in {"first": "first", "second": "first", "first:one": "first:one", "second:one": "second:one"}.items():
        answer = served.post("/v1/completions", {"model": name, "prompt": "Hi", "max_tokens": 1})
        assert answer["model"] == shown, name


def test_each_option_is_logged_once(served):
    lines = served.log.read_text()
    for option in ("--enable-lora", "--pipeline-parallel-size 1", "--lora-dtype auto", "--disable-log-requests", "--tokenizer-revision"):
        assert sum(f"{option}: " in line for line in lines.splitlines()) == 1, option
    assert "a-secret" not in lines


def test_options_have_vllms_meaning(served):
    _, text = served.request("GET", "/v1/models")
    assert json.loads(text)["data"][0]["max_model_len"] == 512
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    status, text = served.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": [picture] * 3}]})
    assert status == 400 and "At most 2" in text, text


@pytest.mark.parametrize("options, words", [
    (["--kv-cache-dtype", "fp8_e5m2"], "--kv-cache-dtype \"fp8_e5m2\" is unknown; use auto, int8 or fp8"),
    (["--tensor_parallel_size=0"], "--tensor-parallel-size must be at least 1"),
    (["--pipeline_parallel_size=2"], "--pipeline-parallel-size 2 is not served: only 1 is served"),
    (["--reasoning-parser", "glm45"], "--reasoning-parser \"glm45\" is unknown; use auto, none, qwen3, deepseek_r1 or mistral"),
    (["--limit-mm-per-prompt", '{"images": 2}'], '--limit-mm-per-prompt has "images"'),
    (["--max-model-len", "many"], "--max-model-len takes a whole number or auto, not many"),
    (["--swap-space", "four"], "--swap-space takes bytes"),
])
def test_unsupported_options_are_refused(options, words):
    assert words in refusal(*options)


def test_generation_config_vllm_ignores_sampling_defaults(folders, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(folders["model"], model)
    (model / "generation_config.json").write_text(json.dumps({"do_sample": False, "eos_token_id": 1}))
    texts = []
    for options in (["auto"], ["vllm"], ["vllm", "--override-generation-config", '{"do_sample": false}']):
        server = ServedProcess(model, "--dtype", "float32", "--threads", "1", "--max-model-len", "128", "--generation-config", *options)
        try:
            bodies = [{"prompt": "Tell me.", "max_tokens": 12, "ignore_eos": True, "seed": seed} for seed in (1, 2)]
            texts.append([server.post("/v1/completions", body)["choices"][0]["text"] for body in bodies])
        finally:
            assert server.stop() == 0
    file, none, own = texts
    assert file[0] == file[1] == own[0] == own[1]
    assert none[0] != none[1]
