"""Request fields of vLLM on the served engine: their effects on prompts and answers."""

import json

import pytest

from serving import Server, chat_body


@pytest.fixture(scope="module")
def served(folders):
    server = Server({"model": folders["model"]})
    yield server
    server.stop()


def complete(served, prompt, **fields):
    body = {"model": "tiny", "prompt": prompt, "temperature": 0, "max_tokens": 12, "ignore_eos": True, "return_token_ids": True} | fields
    return served.post("/v1/completions", body)["choices"][0]


def tokens(served, text):
    return served.post("/tokenize", {"model": "tiny", "prompt": text, "add_special_tokens": False})["tokens"]


def refused(served, path, body, param):
    status, text = served.request("POST", path, body)
    assert status == 400 and json.loads(text)["error"]["param"] == param, text


def test_only_allowed_token_ids_are_generated(served):
    allowed = [65, 66, 67]
    for temperature in (0, 1):
        assert set(complete(served, "Tell me.", allowed_token_ids=allowed, temperature=temperature, seed=1)["token_ids"]) <= set(allowed)
    refused(served, "/v1/completions", {"model": "tiny", "prompt": "x", "allowed_token_ids": [10**6]}, "allowed_token_ids")


def test_echo_without_new_tokens_returns_the_prompt(served):
    ids = tokens(served, "a red square left of a circle")
    whole = complete(served, ids, echo=True, logprobs=1)
    alone = complete(served, ids, echo=True, logprobs=1, max_tokens=0)
    assert whole["text"].startswith(alone["text"]) and alone["text"] == served.post("/detokenize", {"model": "tiny", "tokens": ids})["prompt"]
    assert alone["finish_reason"] == "length" and alone["token_ids"] == [] and alone["prompt_token_ids"] == ids
    assert alone["logprobs"]["tokens"] == whole["logprobs"]["tokens"][:len(ids)]
    assert alone["logprobs"]["token_logprobs"][1:] == pytest.approx(whole["logprobs"]["token_logprobs"][1:len(ids)], abs=1e-4)
    body = {"model": "tiny", "prompt": [ids, ids[:3]], "echo": True, "max_tokens": 0, "n": 2}
    answer = served.post("/v1/completions", body)
    assert answer["usage"]["completion_tokens"] == 0 and len(answer["choices"]) == 4
    refused(served, "/v1/completions", body | {"echo": False}, "max_tokens")


def test_stream_begins_with_prompt_token_ids(served):
    ids = tokens(served, "a red square")
    status, text = served.request("POST", "/v1/completions", {"model": "tiny", "prompt": [ids, ids[:2]], "max_tokens": 3, "ignore_eos": True,
                                                             "stream": True, "return_token_ids": True})
    assert status == 200, text
    choices = [json.loads(line[6:])["choices"][0] for line in text.splitlines() if line.startswith("data: {")]
    for index, prompt in enumerate([ids, ids[:2]]):
        own = [choice.get("prompt_token_ids") for choice in choices if choice["index"] == index]
        assert own[0] == prompt and own[1:] and set(own[1:]) == {None}


def test_zero_top_p_keeps_the_most_likely_token(served):
    greedy = complete(served, "Tell me.")
    assert complete(served, "Tell me.", temperature=2)["token_ids"] != greedy["token_ids"]
    for seed in range(3):
        assert complete(served, "Tell me.", temperature=2, top_p=0, seed=seed)["token_ids"] == greedy["token_ids"]


def test_bad_words_are_not_generated(served):
    plain = complete(served, "Tell me.", allowed_token_ids=list(range(65, 91)))
    word = plain["text"][0]
    assert tokens(served, word) == plain["token_ids"][:1]
    other = complete(served, "Tell me.", allowed_token_ids=list(range(65, 91)), bad_words=[word])
    assert plain["token_ids"][0] not in other["token_ids"]
    pair = complete(served, "Tell me.", allowed_token_ids=list(range(65, 91)), bad_words=[plain["text"][:2]])
    assert plain["text"][:2] not in pair["text"]


def test_truncated_prompt_keeps_its_last_tokens(served):
    ids = tokens(served, "a red square left of a circle and a green one")
    assert len(ids) > 8
    short = complete(served, ids, truncate_prompt_tokens=5)
    assert short["prompt_token_ids"] == ids[-5:]
    assert short["token_ids"] == complete(served, ids[-5:])["token_ids"]
    assert complete(served, ids, truncate_prompt_tokens=1000)["prompt_token_ids"] == ids
    refused(served, "/v1/completions", {"model": "tiny", "prompt": ids, "truncate_prompt_tokens": 10**6}, "truncate_prompt_tokens")


def test_last_message_is_continued(served):
    messages = [{"role": "user", "content": "Tell me."}, {"role": "assistant", "content": "It is a"}]
    prompt = served.post("/tokenize", {"model": "tiny", "messages": messages, "continue_final_message": True})
    text = served.post("/detokenize", {"model": "tiny", "tokens": prompt["tokens"]})["prompt"]
    assert text.endswith("It is a")
    answer = served.post("/v1/chat/completions", chat_body("tiny", "") | {"messages": messages, "continue_final_message": True})
    assert answer["usage"]["prompt_tokens"] == prompt["count"]
    refused(served, "/tokenize", {"model": "tiny", "prompt": "x", "continue_final_message": True}, "continue_final_message")


def test_echo_of_token_ids_returns_their_text(served):
    ids = tokens(served, "Tell me.")
    assert complete(served, ids, echo=True)["text"] == "Tell me." + complete(served, ids)["text"]
