"""Log probabilities of prompt tokens from the server, against those of transformers."""

import pytest
import torch

from reference import Reference
from serving import Server, make_folders

TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folders = make_folders(tmp_path_factory.mktemp("prompt-logprobs"))
    reference = Reference(folders["model"])
    reference.load_adapter("two", folders["two"])
    server = Server({name: folders[name] for name in ("model", "two")}, "--max-num-batched-tokens", "32", "--max-logprobs", "6")
    yield server, reference
    assert server.stop() == 0


def tokens(server, text):
    return server.post("/tokenize", {"model": "tiny", "prompt": text})["tokens"]


def expected(reference, ids, adapters=()):
    """The log-softmax before each token except the first, [T - 1, vocab]."""
    _, logits, _ = reference.forward({"tokens": ids, "adapters": [{"name": name} for name in adapters]})
    return logits[:-1].log_softmax(-1)


@pytest.mark.parametrize(("model", "adapters"), [("tiny", ()), ("two", ("two",))])
def test_logprobs_of_every_prompt_token_equal_reference(made, model, adapters):
    server, reference = made
    text = "a red square stands left of a green circle, and nobody knows why it does so; " * 2
    ids = tokens(server, text)
    assert len(ids) > 64, "more than two steps"
    rows = expected(reference, ids, adapters)
    body = {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 4}
    for _ in range(2):  # the second request could hit a cached prefix, but must not use it
        prompt = server.post("/v1/completions", body)["choices"][0]["prompt_logprobs"]
        assert prompt[0] is None and len(prompt) == len(ids)
        for entry, token, row in zip(prompt[1:], ids[1:], rows):
            own = entry[str(token)]
            assert own["logprob"] == pytest.approx(row[token].item(), abs=TOLERANCE)
            likelier = int((row > row[token] + TOLERANCE).sum())
            as_likely = int((row >= row[token] - TOLERANCE).sum())
            assert likelier < own["rank"] <= as_likely
            ranked = sorted((e for e in entry.values() if e["rank"] <= 4), key=lambda e: e["rank"])
            assert [e["logprob"] for e in ranked] == pytest.approx(row.topk(4).values.tolist(), abs=TOLERANCE)


def test_echo_for_evaluation_harnesses_equals_reference(made):
    server, reference = made
    ids = tokens(server, "a red square left of a circle and a green one")
    rows = expected(reference, ids)
    choice = server.post("/v1/completions", {"model": "tiny", "prompt": ids, "max_tokens": 1, "temperature": 0, "echo": True,
                                             "logprobs": 1, "return_token_ids": True})["choices"][0]
    logprobs = choice["logprobs"]
    assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"][0] is None
    want = rows.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
    assert logprobs["token_logprobs"][1:-1] == pytest.approx(want, abs=TOLERANCE)
    best = [max(top.values()) for top in logprobs["top_logprobs"][1:-1]]
    assert best == pytest.approx(rows.amax(-1).tolist(), abs=TOLERANCE)
    assert len(choice["token_ids"]) == 1 and len(logprobs["tokens"]) == len(ids) + 1
    assert "".join(logprobs["tokens"]) == choice["text"]


def test_chat_prompt_logprobs_respect_the_limit(made):
    server, _ = made
    body = {"model": "tiny", "messages": [{"role": "user", "content": "What is this?"}], "max_tokens": 2}
    answer = server.post("/v1/chat/completions", body | {"prompt_logprobs": 6})
    assert len(answer["prompt_logprobs"]) == answer["usage"]["prompt_tokens"]
    status, text = server.request("POST", "/v1/chat/completions", body | {"prompt_logprobs": 7})
    assert status == 400 and '"param":"prompt_logprobs"' in text
