"""Text formats that are read and written: metrics, statistics, settings and errors."""

import asyncio
import contextlib
import json

import pydantic
import pytest

from clusters import REPOSITORY
from valora_serve.events import whole_events
from valora_serve.metrics_text import add_up, total, values
from valora_serve.protocol import error_body, error_event, forwarded, forwarded_request
from valora_serve.relay import Counts
from valora_serve.settings import Settings, command, parse_bytes
from valora_serve.statistics import PromptScale, Reporter

ONE = """# HELP vllm:num_requests_running Requests that run.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 2
# HELP vllm:ttft_seconds Times.
# TYPE vllm:ttft_seconds histogram
vllm:ttft_seconds_bucket{model_name="m",le="1"} 3
vllm:ttft_seconds_bucket{model_name="m",le="+Inf"} 4
vllm:ttft_seconds_count{model_name="m"} 4
vllm:ttft_seconds_sum{model_name="m"} 2.5
vllm:kv_cache_usage_perc{model_name="m"} 0.5
process_start_time_seconds 100
valora:adapter_bytes{adapter="only here"} 7
"""
TWO = (
    ONE.replace(" 2\n", " 5\n")
    .replace("0.5\n", "0.1\n")
    .replace(" 100", " 90")
    .replace("only here", "only there")
)


def test_metrics_are_summed():
    text = add_up([ONE, TWO])
    assert total(text, "vllm:num_requests_running") == 7
    assert values(text, "vllm:ttft_seconds_bucket") == {
        '{model_name="m",le="1"}': 6,
        '{model_name="m",le="+Inf"}': 8,
    }
    assert total(text, "vllm:ttft_seconds_sum") == pytest.approx(5)
    assert total(text, "vllm:kv_cache_usage_perc") == pytest.approx(0.3)
    assert total(text, "process_start_time_seconds") == 90
    assert values(text, "valora:adapter_bytes") == {
        '{adapter="only here"}': 7,
        '{adapter="only there"}': 7,
    }
    lines = text.splitlines()
    assert lines.count("# TYPE vllm:ttft_seconds histogram") == 1
    at = lines.index(
        "# TYPE vllm:ttft_seconds histogram"
    )  # the samples of a family follow its type
    assert [line.split("{")[0] for line in lines[at + 1 : at + 5]] == [
        "vllm:ttft_seconds_bucket",
        "vllm:ttft_seconds_bucket",
        "vllm:ttft_seconds_count",
        "vllm:ttft_seconds_sum",
    ]
    assert add_up([]) == ""
    assert add_up([ONE]).splitlines() == ONE.splitlines()


def test_adapter_names_with_braces_and_escapes_are_parsed():
    hostile = r'vllm:lora_adapter_loaded{adapter_name="a} 9\\\"{b",level="gpu"} 1'
    text = add_up([hostile, hostile])
    assert text.splitlines() == [hostile.removesuffix("1") + "2"]


def test_ingress_counts_have_the_same_format():
    text = add_up([Counts(requests=3, retries=1).text("i", 2)])
    assert (
        total(text, "valora_serve:requests_total") == 3
        and total(text, "valora_serve:replicas") == 2
    )


METRICS = """vllm:cache_config_info{a="b",block_size="16",num_gpu_blocks="100"} 1
valora:pool_blocks{a="b",use="free"} 4
valora:pool_blocks{a="b",use="running"} 96
vllm:request_time_per_output_token_seconds_sum{a="b"} 2
vllm:request_time_per_output_token_seconds_count{a="b"} 1000
valora:cost_seconds{a="b",of="step"} 0.25
valora:cost_seconds{a="b",of="prefill_token"} 0.125
valora:cost_seconds{a="b",of="decode_token"} 7
valora:engine_steps_total{a="b"} 70
valora:visual_encode_seconds_total{a="b"} 6
valora:visuals_encoded_total{a="b"} 4
valora:memory_move_seconds_total{a="b",move="load_adapter"} 3
valora:memory_moves_total{a="b",move="load_adapter"} 6
valora:memory_move_seconds_total{a="b",move="read_kv"} 50
"""


def test_reports_have_rates_since_the_last_report_and_token_costs():
    cards = [
        {"name": "b", "resident": True},
        {"name": "a", "resident": True},
        {"name": "c", "resident": False},
    ]
    reporter = Reporter()
    stats = reporter.report(METRICS, cards)
    assert stats["resident"] == ["a", "b"]
    assert stats["pool_tokens"] == 1600 and stats["crowded"]
    assert stats["output_token"] == pytest.approx(0.002)
    assert stats["adapter_load"] == pytest.approx(0.5) and stats["medium"] == 1.5
    assert stats["step"] == 0.25 and stats["prefill_token"] == 0.125
    later = METRICS.replace('_seconds_sum{a="b"} 2', '_seconds_sum{a="b"} 3').replace(
        "} 1000", "} 1100"
    )
    again = reporter.report(later, cards)
    assert again["output_token"] == pytest.approx(0.01) and "adapter_load" not in again
    # No step has run since, so the correction of the costs may be outdated.
    assert "step" not in again and "prefill_token" not in again
    assert "step" in reporter.report(later.replace("} 70", "} 71"), cards)


def test_prompt_estimates_are_scaled_to_the_servers_counts():
    scale = PromptScale()
    assert scale.look(0) == 1
    seen, counted = [], 0
    for _ in range(100):
        scale.add(250)
        counted += 1000
        seen.append(scale.look(counted))
    assert seen == sorted(seen) and seen[-1] == pytest.approx(4, rel=0.01)
    for _ in range(100):  # a restarted server, about which nothing is known
        scale.add(500)
        counted = 500 if counted > 60_000 else counted + 500
        last = scale.look(counted)
    assert last == pytest.approx(1, rel=0.05)
    reporter = Reporter()
    reporter.scale.add(2000)
    stats = reporter.report(METRICS + 'vllm:request_prompt_tokens_sum{a="b"} 6000\n', [])
    assert stats["prefill_token"] == 0.25 and stats["pool_tokens"] == 800


def test_errors_equal_those_of_the_server():
    assert json.loads(error_body(404, "no such model", "model")) == {
        "error": {
            "message": "no such model",
            "type": "NotFoundError",
            "param": "model",
            "code": 404,
        }
    }
    event, done, end = error_event("/v1/completions", 503, "lost", 7).decode().split("\n\n")
    assert json.loads(event.removeprefix("data: "))["error"]["code"] == 503
    assert (done, end) == ("data: [DONE]", "")


def test_broken_response_stream_ends_with_an_error_event():
    name, data = (
        error_event("/v1/responses", 503, "lost", 7).decode().removesuffix("\n\n").split("\n")
    )
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: ")) == {
        "type": "error",
        "sequence_number": 7,
        "code": "ServiceUnavailableError",
        "message": "lost",
        "param": None,
    }


@pytest.mark.parametrize(
    "pieces, given",
    [
        ([b"data: 1\n\nda", b"ta: 2\n", b"\n"], [b"data: 1\n\n", b"data: 2\n\n"]),
        ([b"data: 1\n\ndata: 2\n\n"], [b"data: 1\n\ndata: 2\n\n"]),
        (
            [b"data: 1\n\n", b"data: half"],
            [b"data: 1\n\n", b"data: half"],
        ),  # ended normally: nothing is missing
        ([], []),
    ],
)
def test_streams_are_split_after_events(pieces, given):
    assert asyncio.run(gathered(pieces, None)) == given


def test_broken_stream_ends_after_a_complete_event():
    assert asyncio.run(gathered([b"data: 1\n\ndata: ha"], ConnectionError())) == [b"data: 1\n\n"]


async def gathered(pieces, error):
    async def source():
        for piece in pieces:
            yield piece
        if error:
            raise error

    found = []
    with contextlib.suppress(ConnectionError):
        async for events in whole_events(source()):
            found.append(events)
    return found


def test_hop_by_hop_headers_are_not_forwarded():
    assert forwarded(
        {
            "Host": "a",
            "Content-Length": "3",
            "Connection": "close",
            "Authorization": "Bearer k",
            "X-Valora-Application": "one",
        }
    ) == {"Authorization": "Bearer k", "X-Valora-Application": "one"}


def test_replicas_learn_the_host_that_clients_asked():
    assert forwarded_request({"host": "a:1", "origin": "http://a:1"}) == {
        "origin": "http://a:1",
        "x-forwarded-host": "a:1",
    }
    assert forwarded_request({"host": "a:1", "x-forwarded-host": "b"}) == {"x-forwarded-host": "b"}


def test_settings_are_read_from_key_value_arguments():
    settings = Settings.model_validate(
        {
            "model": "/m",
            "options": "--max-model-len 2k --dtype float32",
            "cores": "4",
            "memory": "2G",
            "replicas": "3",
            "adapters": "s3://bucket/adapters",
        }
    )
    assert settings.options == ["--max-model-len", "2k", "--dtype", "float32"]
    assert (settings.cores, settings.memory, settings.replicas) == (4, 2 * 2**30, 3)
    assert settings.adapters == "s3://bucket/adapters"
    words = command(settings, 4.5)
    assert (
        words[words.index("--threads") + 1] == "4"
        and "--pool-memory" in words
        and words[-2:] == ["--dtype", "float32"]
    )
    own = Settings.model_validate({"model": "/m", "memory": "2G", "options": "--pool-memory 1G"})
    assert command(own, 1).count("--pool-memory") == 1


def test_ranks_of_a_replica_share_its_cores():
    given = {"model": "/m", "cores": 8, "tensor_parallel_size": 2, "rank_cores": "0-3|4-7"}
    words = command(Settings.model_validate(given), 8)
    for option, value in (("--threads", "8"), ("--tensor-parallel-size", "2")):
        assert words[words.index(option) + 1] == value
    assert words[words.index("--rank-cores") + 1] == "0-3|4-7"
    assert "--tensor-parallel-size" not in command(Settings.model_validate({"model": "/m"}), 8)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"model": "/m", "nonsense": 1},
        {"model": "/m", "options": "--port 8000"},
        {"model": "/m", "memory": "much"},
        {"model": "/m", "min_replicas": 3, "max_replicas": 2},
        {"model": "/m", "routing": "best"},
        {"model": "/m", "cores": 1, "tensor_parallel_size": 2},
        {"model": "/m", "options": "-tp 2"},
    ],
)
def test_wrong_settings_are_refused(given):
    with pytest.raises(pydantic.ValidationError):
        Settings.model_validate(given)


def test_documentation_lists_every_setting():
    page = (REPOSITORY / "docs/ray.md").read_text()
    assert [name for name in Settings.model_fields if f"`{name}`" not in page] == []


def test_byte_sizes_are_parsed_as_by_the_program():
    assert [parse_bytes(text) for text in ("10", "1k", "1K", "1.5G", "2GiB", 7)] == [
        10,
        1000,
        1024,
        3 * 2**29,
        2 * 2**30,
        7,
    ]
