"""/v1/responses, empty salts, and SIGTERM."""

import http.client
import json
import signal
import threading

import openai
import pytest
from pydantic import BaseModel, Field

from peers import DEMO, SPECIAL, peer
from serving import ServedProcess

BASIC = "openai/responses/test_basic.py"
FORMS = "openai/responses/test_structured_output.py"
SALT = "pooling/test_cache_salt_validation.py"
SHUTDOWN = "openai/completion/test_shutdown.py"
FREE = {"ignore_eos": True, "logit_bias": SPECIAL}


class Event(BaseModel):
    event_name: str = Field(max_length=8)
    date: str = Field(max_length=8)


def respond(client, given, **fields):
    return client.responses.create(model="demo", input=given, **{"max_output_tokens": 10, "temperature": 0} | fields)


@peer(BASIC, "test_simple_input[the form]")
def test_last_output_is_a_message(client):
    output = respond(client, "What is 13 * 24?", extra_body=FREE).output[-1]
    assert output.type == "message" and output.content[0].text


@peer(BASIC, "test_chat_with_input_type")
def test_message_parts_are_accepted(client, tokenizer):
    ends = {"logit_bias": {str(tokenizer.eos_token_id): 100}}
    assert respond(client, [{"role": "user", "content": [{"type": "input_text", "text": "Hello!"}]}], extra_body=ends).status == "completed"


@peer(BASIC, "test_instructions[the turns]")
@peer(BASIC, "test_chat[the turns]")
def test_instructions_become_a_system_message(client):
    question = {"role": "user", "content": "What is 13 * 24?"}
    one = respond(client, [question], instructions="Finish with QED.", extra_body=FREE)
    two = respond(client, [{"role": "system", "content": "Finish with QED."}, question], extra_body=FREE)
    assert one.output_text == two.output_text != "" and one.usage.input_tokens == two.usage.input_tokens
    turns = [question, {"role": "assistant", "content": "15. QED."}, {"role": "user", "content": "Multiply it by 2."}]
    assert respond(client, turns, extra_body=FREE).output_text


@peer(BASIC, "test_streaming")
def test_stream_events_join_to_the_response(client, tokenizer):
    ends = {"logit_bias": SPECIAL | {str(tokenizer.eos_token_id): 0}, "structured_outputs": {"regex": "[a-z]{3}"}}
    events = list(respond(client, "What is 13 * 24?", stream=True, extra_body=ends))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == events[-1].response.output_text


@peer(FORMS, "test_structured_output[the form]")
def test_response_follows_its_schema(client):
    form = {"type": "json_schema", "name": "event", "schema": Event.model_json_schema() | {"additionalProperties": False}, "strict": True}
    Event.model_validate(json.loads(respond(client, "A fair on Friday.", text={"format": form}, max_output_tokens=200).output_text))


@peer(FORMS, "test_structured_output_with_parse[the form]")
def test_response_is_parsed_into_a_model(client):
    answer = client.responses.parse(model="demo", instructions="Extract the event.", input="A fair on Friday.", text_format=Event,
                                    max_output_tokens=200, temperature=0)
    assert isinstance(answer.output_parsed, Event)


@peer(SALT, "test_pooling_rejects_empty_cache_salt")
@peer(SALT, "test_pooling_matches_completions_on_empty_cache_salt")
def test_empty_cache_salt_is_refused_everywhere(client):
    with pytest.raises(openai.BadRequestError, match="cache_salt"):
        client.embeddings.create(model="demo", input="a", extra_body={"cache_salt": ""})
    with pytest.raises(openai.BadRequestError, match="cache_salt"):
        client.completions.create(model="demo", prompt="a", max_tokens=1, extra_body={"cache_salt": ""})


@peer(SALT, "test_pooling_accepts_a_real_cache_salt")
@peer(SALT, "test_pooling_allows_cache_salt_to_be_omitted")
def test_cache_salt_is_optional(client):
    for fields in ({"cache_salt": "tenant-a"}, {}):
        assert client.embeddings.create(model="demo", input="a", extra_body=fields).data


def small():
    return ServedProcess("--model", str(DEMO / "model"), "--served-model-name", "demo", "--dtype", "float32", "--threads", "1",
                         "--max-model-len", "4096", "--pool-memory", "64M", "--drain-timeout", "30")


@peer(SHUTDOWN, "test_wait_timeout_completes_requests")
@peer(SHUTDOWN, "test_request_rejection_during_shutdown")
def test_drain_finishes_running_requests_and_refuses_new_ones():
    server, answers = small(), []
    try:
        body = {"model": "demo", "prompt": "a", "max_tokens": 1500, "ignore_eos": True, "temperature": 0}
        thread = threading.Thread(target=lambda: answers.append(server.request("POST", "/v1/completions", body)))
        thread.start()
        server.wait_until(lambda: server.metric("vllm:num_requests_running") > 0, "a running request")
        server.process.send_signal(signal.SIGTERM)
        refused = 0
        while thread.is_alive() and not refused:
            try:
                refused += server.request("POST", "/v1/completions", body | {"max_tokens": 1})[0] == 503
            except (ConnectionError, http.client.HTTPException):
                refused += 1
        thread.join()
        assert refused and answers[0][0] == 200 and json.loads(answers[0][1])["usage"]["completion_tokens"] == 1500
        assert server.process.wait(15) == 0
    finally:
        server.stop()


@peer(SHUTDOWN, "test_abort_timeout_exits_quickly")
@peer(SHUTDOWN, "test_shutdown_on_engine_failure")
def test_idle_server_stops_at_once():
    server = small()
    try:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(4) == 0
        with pytest.raises(ConnectionError):
            server.request("GET", "/health")
    finally:
        server.stop()
