"""Log probabilities of prompts, alone and echoed before a completion."""

import json

import openai
import pytest
from test_peer_completion import IDS, complete

from peers import peer

COMPLETION = "openai/completion/test_completion.py"
TOKEN_IDS = "openai/basic/test_return_token_ids.py"
CHAT = "openai/chat_completion/test_chat.py"
SERVER = "serve/instrumentator/test_basic.py"
HELLO = [{"role": "user", "content": "Hello there"}]


def chat(client, prompt_logprobs):
    return client.chat.completions.create(model="demo", messages=HELLO, max_tokens=3, extra_body={"prompt_logprobs": prompt_logprobs})


@peer(COMPLETION, "test_prompt_logprobs_completion")
@pytest.mark.parametrize("number", [0, 1])
def test_completion_returns_prompt_logprobs(client, number):
    entries = complete(client, IDS, extra_body={"prompt_logprobs": number}).choices[0].prompt_logprobs
    assert len(entries) == len(IDS) and entries[0] is None
    for token, entry in zip(IDS[1:], entries[1:]):
        assert str(token) in entry and max(1, number) <= len(entry) <= number + 1
        assert all(value["logprob"] <= 0 and value["rank"] >= 1 for value in entry.values())
    with pytest.raises(openai.BadRequestError):
        complete(client, IDS, extra_body={"prompt_logprobs": -1})


@peer(COMPLETION, "test_echo_logprob_completion[logprobs of the prompt]")
def test_echo_includes_prompt_logprobs(client, tokenizer):
    choice = complete(client, IDS, echo=True, logprobs=1).choices[0]
    assert choice.text.startswith(tokenizer.decode(IDS))
    logprobs = choice.logprobs
    assert logprobs.text_offset[0] == 0 and len(logprobs.tokens) == len(logprobs.token_logprobs) == len(IDS) + 5
    assert logprobs.token_logprobs[0] is None and logprobs.top_logprobs[0] is None
    assert all(1 <= len(top) <= 2 for top in logprobs.top_logprobs[1:])
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])


@peer(TOKEN_IDS, "test_comparison_with_prompt_logprobs_and_logprobs[echo]")
def test_echo_returns_prompt_and_answer_token_ids(client):
    choice = complete(client, IDS, echo=True, logprobs=1,
                      extra_body={"return_tokens_as_token_ids": True, "return_token_ids": True}).choices[0]
    assert choice.logprobs.tokens == [f"token_id:{token}" for token in IDS + choice.token_ids]


@peer(CHAT, "test_prompt_logprobs_chat")
def test_chat_returns_prompt_logprobs(client):
    answer = chat(client, 0)
    assert len(answer.prompt_logprobs) == answer.usage.prompt_tokens
    with pytest.raises(openai.BadRequestError):
        chat(client, -1)


@peer(CHAT, "test_more_than_one_prompt_logprobs_chat")
def test_prompt_logprobs_return_the_requested_candidates(client):
    for number in (1, 2):
        assert all(number <= len(entry) <= number + 1 for entry in chat(client, number).prompt_logprobs[1:])


@peer(SERVER, "test_server_load")
def test_load_endpoint_reports_zero_when_idle(served):
    status, text = served.request("GET", "/load")
    assert (status, json.loads(text)) == (200, {"server_load": 0})
