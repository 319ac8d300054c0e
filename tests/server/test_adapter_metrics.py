"""Adapter locations and activity in /metrics, and the Grafana board, which must only use existing metrics."""

import json
import pathlib
import re

import pytest

from serving import Server

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BOARD = json.loads((REPOSITORY / "deploy/grafana/valora.json").read_text())


@pytest.fixture(scope="module")
def text(folders, tmp_path_factory):
    applications = tmp_path_factory.mktemp("metrics") / "applications.yaml"
    applications.write_text("applications:\n  - {name: mine, models: [two], ttft: 1}\n")
    server = Server(folders, "--applications", applications, "--allow-runtime-lora-updating")
    assert server.request("POST", "/v1/pin_lora_adapter", {"lora_name": "one"})[0] == 200
    server.chat("two", "Hi", max_tokens=3)
    server.wait_until(lambda: server.metric("vllm:num_gpu_loaded_lora_adapters") >= 2, "both adapters are in the pool")
    text = server.request("GET", "/metrics")[1]
    assert server.stop() == 0
    return text


def samples(text, name):
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith((name + "{", name + " "))}


def test_adapters_in_memory_have_series(text):
    loaded = samples(text, "vllm:lora_adapter_loaded")
    assert set(loaded.values()) == {1}
    by_name = {re.search('adapter_name="(.*?)"', series)[1]: series for series in loaded}
    assert 'level="gpu"' in by_name["one"] and 'pinned="true"' in by_name["one"] and 'rank="1"' in by_name["one"]
    assert 'level="gpu"' in by_name["two"] and 'pinned="false"' in by_name["two"]
    (most,) = samples(text, "vllm:max_gpu_lora_adapters").values()
    (count,) = samples(text, "vllm:lora_adapter_load_seconds_count").values()
    (seconds,) = samples(text, "vllm:lora_adapter_load_seconds_sum").values()
    (in_pool,) = samples(text, "vllm:num_gpu_loaded_lora_adapters").values()
    assert 2 <= in_pool <= count <= 4 and 0 < seconds < 60 and most > 4


def test_busiest_adapters_have_token_and_latency_series(text):
    (tokens,) = [value for series, value in samples(text, "valora:adapter_generation_tokens_total").items() if 'adapter_name="two"' in series]
    assert tokens == 3
    for name in ("valora:adapter_time_to_first_token_seconds_count", "valora:adapter_time_per_output_token_seconds_count"):
        assert list(samples(text, name).values()) == [1]


def test_dashboard_panels_use_existing_metrics(text):
    assert len(BOARD["panels"]) == 12
    names = set()
    for panel in BOARD["panels"]:
        assert panel["title"].endswith("?")
        for target in panel["targets"]:
            plain = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", target["expr"])
            names |= set(re.findall(r"[a-z_]+:[a-z_]+|http_[a-z_]+", plain))
    assert len(names) > 25
    ingress = {name for name in names if name.startswith("valora_serve:")}
    shown = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines()}
    assert names - ingress <= shown
    source = "".join(path.read_text() for path in (REPOSITORY / "python/valora_serve/valora_serve").glob("*.py"))
    assert all(re.search(rf'\b{name.removeprefix("valora_serve:")}\b', source) for name in ingress)
