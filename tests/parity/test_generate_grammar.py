"""Choices: log probabilities against transformers' logits, renormalised over allowed tokens that this file
determines independently."""

import pytest
import torch
from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode

import checkpoints

PROMPT = [{"role": "user", "content": "Which one?"}]
CHOICES = ["yes, the first", "yes, the second one", " no", "né ☃"]  # one begins with a space, which Llama 2 drops elsewhere
BYTES = {character: byte for byte, character in bytes_to_unicode().items()}


def token_bytes(tokenizer):
    """The bytes of every ordinary token, by id."""
    special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
    if "<0x00>" in tokenizer.get_vocab():
        text = {id: token for token, id in tokenizer.get_vocab().items() if id not in special}
        return {id: bytes([int(token[3:5], 16)]) if token.startswith("<0x") else token.replace("▁", " ").encode()
                for id, token in text.items()}
    return {id: bytes(BYTES[character] for character in token)
            for token, id in tokenizer.get_vocab().items() if id not in special}


def allowed(texts, done, eos):
    """The ids that may follow the bytes generated so far."""
    whole = [choice.encode() for choice in CHOICES]
    ids = [id for id, text in texts.items() if text and any(choice.startswith(done + text) for choice in whole)]
    return ids + ([eos] if done in whole else [])


@pytest.mark.parametrize("name", ["text-one-layer", "llama3-scaled", "llama2-biased"])
def test_log_probabilities_are_renormalised_over_allowed_tokens(engines, references, name):
    family = checkpoints.family(name)
    texts = token_bytes(family.tokenizer())
    end = family.special_id(family.eos)
    seen = set()
    for seed in range(12):
        request = {"messages": PROMPT, "choice": CHOICES, "sampling": {
            "temperature": 1, "seed": seed, "max_tokens": 60, "logprobs": 4096}}
        choice = engines[name].one(request)["choices"][0]
        tokens = [token["id"] for token in choice["tokens"]]
        _, logits = references[name].next_token_logits({"messages": PROMPT}, tokens)
        done = b""
        for row, token in zip(logits, choice["tokens"], strict=True):
            ids = allowed(texts, done, end)
            assert sorted(token["top_ids"]) == sorted(ids)
            expected = torch.log_softmax(row[token["top_ids"]], 0)
            assert torch.allclose(torch.tensor(token["top_logprobs"]), expected, atol=1e-4)
            done += texts.get(token["id"], b"")
        assert choice["text"] == done.decode() in CHOICES
        seen.add(done)
    assert len(seen) > 1
