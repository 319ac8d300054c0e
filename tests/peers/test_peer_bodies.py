"""Biases, stop tokens, and refused bodies."""

import json

import openai
import pytest
from test_peer_chat import chat

from peers import peer

BIAS = "openai/chat_completion/test_chat_logit_bias_validation.py"
STOPS = "openai/chat_completion/test_chat_stop_token_ids_validation.py"
BODIES = "openai/chat_completion/test_non_object_body_validation.py"
VOCABULARY = 1280


@peer(BIAS, "test_chat_logit_bias_valid")
def test_bias_of_the_last_token_is_accepted(client):
    assert chat(client, logit_bias={str(VOCABULARY - 1): 1.0}).choices[0].message.content is not None


def refusal(client, **fields):
    with pytest.raises(openai.BadRequestError) as error:
        chat(client, **fields)
    assert error.value.status_code == 400
    return str(error.value)


@peer(BIAS, "test_chat_logit_bias_invalid")
def test_bias_outside_the_vocabulary_is_refused(client):
    words = refusal(client, logit_bias={str(VOCABULARY + 1): 1.0})
    assert str(VOCABULARY + 1) in words and str(VOCABULARY) in words


@peer(BIAS, "test_chat_logit_bias_non_integer_key")
def test_bias_with_a_non_numeric_key_is_refused(client):
    words = refusal(client, logit_bias={"not_a_token_id": 50})
    assert "not_a_token_id" in words and "logit_bias" in words


@peer(BIAS, "test_chat_logit_bias_non_numeric_value")
def test_non_numeric_bias_is_refused(client):
    assert "logit_bias" in refusal(client, logit_bias={"1": "not_a_number"})


@peer(BIAS, "test_chat_logit_bias_multiple_non_integer_keys")
def test_all_wrong_keys_of_a_bias_are_named(client):
    words = refusal(client, logit_bias={"bad1": 50.0, "bad2": 20.0})
    assert "bad1" in words and "bad2" in words


@peer(STOPS, "test_chat_stop_token_ids_valid")
def test_last_token_is_accepted_as_a_stop_token(client):
    assert chat(client, extra_body={"stop_token_ids": [VOCABULARY - 1]}).choices[0].message.content is not None


@peer(STOPS, "test_chat_stop_token_ids_out_of_vocab")
def test_unknown_stop_token_is_refused_by_number(client):
    words = refusal(client, extra_body={"stop_token_ids": [VOCABULARY + 1]})
    assert str(VOCABULARY + 1) in words and str(VOCABULARY) in words


@peer(STOPS, "test_chat_stop_token_ids_negative")
def test_negative_stop_token_is_refused(client):
    refusal(client, extra_body={"stop_token_ids": [-1]})


@pytest.mark.parametrize("body", ['"not valid json{{{"', '["not", "an", "object"]', "42", "null"])
@peer(BODIES, "test_chat_completion_request_rejects_non_object_body")
def test_non_object_bodies_are_refused(served, body):
    status, text = served.request("POST", "/v1/chat/completions", body.encode())
    assert status == 400 and json.loads(text)["error"]["message"]


@peer(BODIES, "test_chat_completion_request_cache_salt_still_validated_on_dict")
def test_empty_cache_salt_is_refused(client):
    assert "cache_salt" in refusal(client, extra_body={"cache_salt": ""})
