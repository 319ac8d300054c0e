"""Speculative decoding must not change answers: a server with --speculative-config against one
without."""

import concurrent.futures
import json

import pytest

from serving import Server, make_folders

NGRAM = json.dumps({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1})
SCHEMA = {"type": "object", "properties": {"boxes": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 6}},
          "required": ["boxes"], "additionalProperties": False}
TEXT = "a red square stands left of a green circle, a red square stands left of a green"
# Request fields that make answers depend on earlier choices.
CASES = {
    "greedy": {"temperature": 0},
    "sampled": {"temperature": 1.3, "seed": 7, "n": 3},
    "penalties": {"temperature": 0, "presence_penalty": 1.5, "frequency_penalty": 0.7, "repetition_penalty": 1.2},
    "log probabilities": {"temperature": 0, "logprobs": 3},
    "scored prompt": {"temperature": 0, "logprobs": 1, "echo": True},
    "least tokens": {"temperature": 0.8, "seed": 3, "min_tokens": 20},
    "stop": {"temperature": 0, "stop": ["e", "a"], "min_tokens": 5},
    "schema": {"temperature": 0.9, "seed": 5, "structured_outputs": {"json": SCHEMA}},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folders = make_folders(tmp_path_factory.mktemp("speculation"))
    started = {name: Server({key: folders[key] for key in ("model", "one", "two")}, "--dtype", "float32", *options)
               for name, options in {"plain": (), "guessing": ("--speculative-config", NGRAM)}.items()}
    yield started
    for server in started.values():
        assert server.stop() == 0


def answers(server, case, model):
    body = {"model": model, "prompt": TEXT, "max_tokens": 40, **CASES[case]}
    return [{key: choice[key] for key in ("text", "logprobs", "finish_reason", "stop_reason")}
            for choice in server.post("/v1/completions", body)["choices"]]


def count(server, name):
    return server.metric(f"vllm:spec_decode_{name}_total")


def close(guessed, plain):
    if isinstance(plain, float):
        return guessed == pytest.approx(plain, abs=1e-4)
    if isinstance(plain, dict):
        return guessed.keys() == plain.keys() and all(close(guessed[key], plain[key]) for key in plain)
    if isinstance(plain, list):
        return len(guessed) == len(plain) and all(map(close, guessed, plain))
    return guessed == plain


@pytest.mark.parametrize("case", CASES)
def test_speculation_changes_no_answer(servers, case):
    for model in ("tiny", "two"):
        plain = answers(servers["plain"], case, model)
        assert close(answers(servers["guessing"], case, model), plain), (model, plain)


def test_concurrent_adapters_with_speculation_change_no_answer(servers):
    wanted = [(case, model) for case in CASES for model in ("tiny", "one", "two")]
    plain = [answers(servers["plain"], *one) for one in wanted]
    before = count(servers["guessing"], "num_accepted_tokens")
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        guessed = list(pool.map(lambda one: answers(servers["guessing"], *one), wanted))
    assert [one for one, a, b in zip(wanted, guessed, plain) if not close(a, b)] == []
    assert count(servers["guessing"], "num_accepted_tokens") > before, "some guesses were right"
    assert count(servers["guessing"], "num_draft_tokens") > count(servers["guessing"], "num_accepted_tokens"), "and some wrong"
    assert count(servers["plain"], "num_drafts") == 0
