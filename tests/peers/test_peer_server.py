"""Health, metrics, cancelled requests, keys and request ids."""

import concurrent.futures
import http.client
import time
import uuid

import openai
import pytest
from test_peer_vision import ask, image, question

from peers import DEMO, peer
from serving import ServedProcess

BASIC = "serve/instrumentator/test_basic.py"
METRICS = "serve/instrumentator/test_metrics.py"
KEYS = "serve/middleware/test_authentication_middleware.py"
HISTOGRAMS = """request_prompt_tokens request_generation_tokens request_params_n request_params_max_tokens time_to_first_token_seconds
    inter_token_latency_seconds e2e_request_latency_seconds request_queue_time_seconds request_inference_time_seconds
    request_prefill_time_seconds request_decode_time_seconds""".split()
OTHERS = """num_requests_running num_requests_waiting kv_cache_usage_perc prefix_cache_queries prefix_cache_hits num_preemptions_total
    prompt_tokens_total generation_tokens_total iteration_tokens_total cache_config_info request_success_total""".split()


def text_of(served):
    status, text = served.request("GET", "/metrics")
    assert status == 200
    return text


def values(served, names):
    return {name: served.metric("vllm:" + name) for name in names}


@peer(BASIC, "test_show_version")
def test_version_is_reported(served):
    status, text = served.request("GET", "/version")
    assert status == 200 and '"version"' in text


@peer(BASIC, "test_check_health")
def test_health_is_200(served):
    assert served.request("GET", "/health")[0] == 200


@peer(BASIC, "test_request_cancellation")
def test_abandoned_requests_are_cancelled(served):
    hasty = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=0.25)

    def ask_and_leave(_):
        with pytest.raises(openai.APITimeoutError):
            hasty.chat.completions.create(model="demo", messages=[{"role": "user", "content": "Write a long story"}], max_tokens=900,
                                          temperature=0, extra_body={"min_tokens": 900})
        return True

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert all(pool.map(ask_and_leave, range(200)))
    patient = hasty.with_options(timeout=10)
    assert len(patient.chat.completions.create(model="demo", messages=[{"role": "user", "content": "hi"}], max_tokens=10).choices) == 1


@peer(BASIC, "test_request_wrong_content_type")
def test_form_content_type_is_refused(client):
    with pytest.raises(openai.APIStatusError):
        client.chat.completions.create(model="demo", messages=[{"role": "user", "content": "hi"}], max_tokens=10,
                                       extra_headers={"Content-Type": "application/x-www-form-urlencoded"})


@peer(METRICS, "test_metrics_counts")
def test_ten_requests_are_counted(served, client):
    names = [f"{name}_count" for name in HISTOGRAMS] + ["request_prompt_tokens_sum", "request_generation_tokens_sum",
                                                        "request_params_max_tokens_sum", "prompt_tokens_total", "generation_tokens_total",
                                                        "request_success_total"]
    before = values(served, names)
    for i in range(10):
        client.completions.create(model="demo", prompt=[20 + i, *range(30, 41)], max_tokens=10, extra_body={"ignore_eos": True})
    expected = dict.fromkeys(names, 10) | {
        "inter_token_latency_seconds_count": 90, "request_prompt_tokens_sum": 120, "request_generation_tokens_sum": 100,
        "request_params_max_tokens_sum": 100, "prompt_tokens_total": 120, "generation_tokens_total": 100}
    difference = lambda: {name: value - before[name] for name, value in values(served, names).items()}
    served.wait_until(lambda: difference()["request_success_total"] >= 10, "ten requests counted")
    for _ in range(100):  # the last request's histograms may follow later
        if difference() == expected:
            break
        time.sleep(0.05)
    assert difference() == expected


@peer(METRICS, "test_metrics_counts[preemptions and iterations]")
def test_steps_of_ten_requests_are_counted(served, client):
    names = ["request_num_preemptions_count", "iteration_tokens_total_sum", "iteration_tokens_total_count"]
    before = values(served, names)
    for i in range(10):
        client.completions.create(model="demo", prompt=[60 + i, *range(30, 41)], max_tokens=10, extra_body={"ignore_eos": True})
    served.wait_until(lambda: [value - before[name] for name, value in values(served, names).items()] == [10, 10 * (12 + 10), 100],
                      "steps counted")


@peer(METRICS, "test_metrics_exist")
def test_vllm_metric_names_exist(served, client):
    client.completions.create(model="demo", prompt="Hello", max_tokens=5)
    text = text_of(served)
    wanted = OTHERS + [f"{name}_{part}" for name in HISTOGRAMS for part in ("sum", "bucket", "count")]
    assert [name for name in wanted if f"vllm:{name}" not in text] == []


@peer(METRICS, "test_metrics_exist[newer names]")
def test_newer_vllm_metric_names_exist(served):
    text = text_of(served)
    assert [name for name in ("num_requests_waiting_by_reason", "request_num_preemptions_count") if name not in text] == []


@peer(METRICS, "test_metrics_exist[labels of the cache]")
def test_cache_config_has_vllms_labels(served):
    text = text_of(served)
    assert [name for name in ("kv_cache_size_tokens=", "kv_cache_max_concurrency=") if name not in text] == []


@peer(METRICS, "test_metrics_exist[multimodal]")
def test_media_cache_metrics_exist(served, client):
    ask(client, question(image(seed=77)))
    assert "vllm:mm_cache_queries" in text_of(served) and "vllm:mm_cache_hits" in text_of(served)


@peer(METRICS, "test_abort_metrics_reset")
def test_gauges_return_to_zero(served):
    names = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"]
    served.wait_until(lambda: not any(values(served, names).values()), "an idle server")
    connections = [http.client.HTTPConnection("127.0.0.1", served.port, timeout=30) for _ in range(3)]
    for i, connection in enumerate(connections):
        body = f'{{"model": "demo", "prompt": [{100 + i}, 7, 8, 9], "max_tokens": 900, "min_tokens": 900, "temperature": 0}}'
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    served.wait_until(lambda: values(served, names)["num_requests_running"] > 0 and values(served, names)["kv_cache_usage_perc"] > 0, "running requests")
    for connection in connections:
        connection.close()
    served.wait_until(lambda: not any(values(served, names).values()), "gauges at zero")


@pytest.fixture(scope="module")
def locked():
    server = ServedProcess("--model", str(DEMO / "model"), "--served-model-name", "demo", "--dtype", "float32", "--threads", "1",
                           "--max-model-len", "256", "--pool-memory", "64M", "--api-key", "valid-token", "--allowed-origins", "*")
    yield server
    assert server.stop() == 0


def key(name):
    return {"Authorization": f"Bearer {name}"}


@peer(KEYS, "test_auto_discovered_protected_routes_require_auth")
def test_endpoints_require_the_key(locked):
    for method, path in [("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("POST", "/v1/embeddings"),
                         ("POST", "/classify"), ("POST", "/tokenize"), ("POST", "/v1/load_lora_adapter"), ("POST", "/v1/responses")]:
        body = {} if method == "POST" else None
        assert locked.request(method, path, body)[0] == 401
        assert locked.request(method, path, body, key("wrong"))[0] == 401
        assert locked.request(method, path, body, key("valid-token"))[0] != 401


@peer(KEYS, "test_auto_discovered_unprotected_routes_no_auth")
def test_health_requires_no_key(locked):
    assert locked.request("GET", "/health")[0] == 200


@peer(KEYS, "test_unguarded_path_with_trailing_slash_needs_no_token")
def test_health_accepts_a_trailing_slash(locked):
    assert locked.request("GET", "/health/")[0] == 200


@peer(KEYS, "test_trailing_slash_does_not_unguard_a_protected_path")
def test_models_with_a_trailing_slash_require_the_key(locked):
    assert locked.request("GET", "/v1/models/")[0] == 401


@peer(KEYS, "test_trailing_slash_does_not_unguard_a_protected_path[with the key]")
def test_models_accept_a_trailing_slash(locked):
    assert locked.request("GET", "/v1/models/", headers=key("valid-token"))[0] == 200


@peer(KEYS, "test_bare_options_on_a_guarded_mount_needs_a_token[no data]")
@peer(KEYS, "test_options_without_origin_is_not_a_preflight[no data]")
def test_options_request_reveals_nothing(locked):
    for headers in ({}, {"Access-Control-Request-Method": "GET"}):
        assert "vllm:" not in locked.request("OPTIONS", "/metrics", headers=headers)[1]


@peer(KEYS, "test_cors_preflight_needs_no_token_and_returns_no_data")
def test_preflight_is_answered_without_metrics(locked):
    connection = http.client.HTTPConnection("127.0.0.1", locked.port, timeout=30)
    connection.request("OPTIONS", "/metrics", headers={"Origin": "http://dashboard.example", "Access-Control-Request-Method": "GET"})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status in (200, 204) and response.headers["access-control-allow-origin"] and "vllm:" not in text


@pytest.mark.parametrize("given", [None, "caller"])
@peer("serve/middleware/test_x_request_id.py", "test_response_has_one_request_id")
def test_every_answer_has_one_request_id(client, given):
    headers = {"X-Request-Id": given} if given else {}
    answer = client.completions.with_raw_response.create(model="demo", prompt="a", max_tokens=1, extra_headers=headers)
    (value,) = answer.headers.get_list("x-request-id")
    if given:
        assert value == given
    else:
        assert uuid.UUID(value).hex == value


@peer("serve/middleware/test_x_request_id.py", "test_response_has_one_request_id[version 4]")
def test_generated_request_id_is_a_uuid4(client):
    made = [client.models.with_raw_response.list().headers["x-request-id"] for _ in range(32)]
    assert {uuid.UUID(value).version for value in made} == {4}
