"""Sampling: distributions against numpy and transformers' own processors, seeds, ends of answers, and limits."""

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

import checkpoints
from programs import Engine, EngineError, token_ids
from reference import logprob_rows
from test_generate_batching import kv_bytes

NAME = "text-one-layer"
PROMPT = [{"role": "user", "content": "What is in this picture?"}]
GREEDY = {"temperature": 0, "ignore_eos": True}
DRAWS = 4096  # of one next token, 128 per request


@pytest.fixture(scope="module")
def engine(engines):
    return engines[NAME]


@pytest.fixture(scope="module")
def next_logits(references):
    """The reference's logits of the next token, and the prompt's ids."""
    prompt, logits, _ = references[NAME].forward({"messages": PROMPT})
    return prompt.ids, logits[-1]


def ask(engine, messages=PROMPT, **sampling):
    return engine.one({"messages": messages, "sampling": sampling})


def draws(engine, **sampling):
    # The k-th choice draws with seed + k, so the seeds are far apart.
    requests = [{"messages": PROMPT, "sampling": {"n": 128, "max_tokens": 1, "seed": 1000 * i, "ignore_eos": True} | sampling}
                for i in range(DRAWS // 128)]
    return np.array([choice["tokens"][0]["id"] for answer in engine.batch(requests) for choice in answer["choices"]])


WARPERS = {
    "plain": ({"temperature": 1}, []),
    "temperature": ({"temperature": 0.6}, [TemperatureLogitsWarper(0.6)]),
    "hot": ({"temperature": 3}, [TemperatureLogitsWarper(3.0)]),
    "top-k": ({"temperature": 1, "top_k": 7}, [TopKLogitsWarper(7)]),
    "top-k-1": ({"temperature": 1, "top_k": 1}, [TopKLogitsWarper(1)]),
    "top-p": ({"temperature": 1, "top_p": 0.55}, [TopPLogitsWarper(0.55)]),
    "tiny-top-p": ({"temperature": 1, "top_p": 1e-6}, [TopPLogitsWarper(1e-6)]),
    "min-p": ({"temperature": 1, "min_p": 0.08}, [MinPLogitsWarper(0.08)]),
    "temperature-top-k-top-p": ({"temperature": 0.8, "top_k": 20, "top_p": 0.8},
                                [TemperatureLogitsWarper(0.8), TopKLogitsWarper(20), TopPLogitsWarper(0.8)]),
    "hot-min-p": ({"temperature": 1.7, "min_p": 0.1}, [TemperatureLogitsWarper(1.7), MinPLogitsWarper(0.1)]),
}


@pytest.mark.parametrize("case", WARPERS)
def test_samples_follow_the_reference_distribution(engine, next_logits, case):
    sampling, warpers = WARPERS[case]
    expected = LogitsProcessorList(warpers)(torch.tensor([next_logits[0]]), next_logits[1][None].clone())[0]
    expected = expected.softmax(-1).double().numpy()
    counts = np.bincount(draws(engine, **sampling), minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    expect_fit(counts, expected)


def expect_fit(counts, expected):
    """Pearson's chi-square test, with rare tokens pooled; five standard deviations above the mean is one seed in
    a million."""
    mean = expected * counts.sum()
    often = mean >= 5
    observed = np.append(counts[often], counts[~often].sum())
    mean = np.append(mean[often], mean[~often].sum())
    kept = mean > 0
    chi_square = ((observed[kept] - mean[kept]) ** 2 / mean[kept]).sum()
    freedom = max(1, kept.sum() - 1)
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5 + 5


def test_default_is_the_plain_distribution(engine, next_logits):
    """Without values in the request or generation_config.json: temperature 1, all tokens."""
    expect_fit(np.bincount(draws(engine), minlength=len(next_logits[1])), next_logits[1].softmax(-1).double().numpy())


def test_equal_seeds_give_equal_samples(engine):
    sampled = {"temperature": 1, "max_tokens": 24, "ignore_eos": True}
    a, b, c = ask(engine, seed=7, **sampled), ask(engine, seed=7, **sampled), ask(engine, seed=8, **sampled)
    assert token_ids(a) == token_ids(b) != token_ids(c)
    # The result is the same with other requests, in another order, and at another position in the
    # batch.
    others = [{"messages": PROMPT, "sampling": sampled | {"seed": seed}} for seed in (8, 9, 7, 10)]
    together = engine.batch(others)
    assert token_ids(together[2]) == token_ids(a) and token_ids(together[0]) == token_ids(c)
    assert token_ids(ask(engine, **sampled)) != token_ids(ask(engine, **sampled))  # answers differ without a seed
    assert token_ids(ask(engine, seed=-1, **sampled)) == token_ids(ask(engine, seed=-1, **sampled))


def test_choices_differ_and_are_reproducible(engine):
    sampled = {"temperature": 1, "max_tokens": 12, "n": 5, "ignore_eos": True}
    answer, again = ask(engine, seed=3, **sampled), ask(engine, seed=3, **sampled)
    choices = [token_ids(answer, i) for i in range(5)]
    assert len(set(map(tuple, choices))) == 5
    assert choices == [token_ids(again, i) for i in range(5)]
    assert answer["usage"]["completion_tokens"] == 60
    assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
    greedy = ask(engine, n=3, max_tokens=6, **GREEDY)
    assert token_ids(greedy, 0) == token_ids(greedy, 1) == token_ids(greedy, 2)


def penalised_greedy(references, engine, penalise, count=40, **sampling):
    """Greedy decoding with penalties that depend on earlier tokens."""
    answer = ask(engine, max_tokens=count, **GREEDY, **sampling)
    tokens = token_ids(answer)
    prompt, logits = references[NAME].next_token_logits({"messages": PROMPT}, tokens)
    expected = [penalise(prompt.ids, tokens[:i], row.clone()).argmax().item() for i, row in enumerate(logits)]
    assert tokens == expected
    assert tokens != token_ids(ask(engine, max_tokens=count, **GREEDY))
    return answer


@pytest.mark.parametrize("penalty", [1.3, 0.8, 2.5])
def test_repetition_penalty_equals_transformers(references, engine, penalty):
    processor = RepetitionPenaltyLogitsProcessor(penalty)
    penalised_greedy(references, engine, lambda prompt, before, row: processor(torch.tensor([prompt + before]), row[None])[0],
                     repetition_penalty=penalty)


@pytest.mark.parametrize("presence, frequency", [(1.5, 0), (0, 0.7), (-0.8, 1.1), (2, -0.1)])
def test_presence_and_frequency_penalties_follow_openais_definition(references, engine, presence, frequency):
    """OpenAI's definition: over generated tokens only."""
    def penalise(_, before, row):
        counts = torch.bincount(torch.tensor(before, dtype=torch.long), minlength=len(row))
        return row - presence * (counts > 0) - frequency * counts
    penalised_greedy(references, engine, penalise, presence_penalty=presence, frequency_penalty=frequency)


def test_logit_bias_forces_a_token(references, engine):
    def penalise(_, before, row):
        row[17] += 2.5
        row[200] -= 100
        return row
    first = token_ids(ask(engine, max_tokens=1, **GREEDY))[0]
    penalised_greedy(references, engine, lambda p, b, row: penalise(p, b, row).index_fill_(0, torch.tensor(first), -1e9),
                     logit_bias=[[17, 2.5], [200, -100], [first, -1e9]])
    assert token_ids(ask(engine, max_tokens=5, logit_bias=[[123, 100]], **GREEDY)) == [123] * 5


def test_min_tokens_forbids_ends(references, engine):
    greedy = token_ids(ask(engine, max_tokens=30, **GREEDY))
    stop = greedy[4]
    at_once = ask(engine, max_tokens=30, stop_token_ids=[stop], **GREEDY)
    assert token_ids(at_once) == greedy[:greedy.index(stop) + 1]
    assert at_once["choices"][0]["finish_reason"] == "stop" and at_once["choices"][0]["stop_reason"] == stop

    def penalise(_, before, row):
        row[stop] = -1e9 if len(before) < 12 else row[stop] + 50
        return row
    answer = ask(engine, max_tokens=30, min_tokens=12, stop_token_ids=[stop], **GREEDY)
    assert stop not in token_ids(answer)[:12]
    with_end = ask(engine, max_tokens=30, min_tokens=12, stop_token_ids=[stop], logit_bias=[[stop, 50]], **GREEDY)
    assert len(token_ids(with_end)) == 13 and token_ids(with_end)[-1] == stop
    prompt, logits = references[NAME].next_token_logits({"messages": PROMPT}, token_ids(with_end))
    assert token_ids(with_end) == [penalise(None, [0] * i, row.clone()).argmax().item() for i, row in enumerate(logits)]


def test_end_of_sequence_stops_unless_ignored(engine):
    end = checkpoints.special_id("im_end")
    ended = ask(engine, max_tokens=9, temperature=0, logit_bias=[[end, 100]])
    assert token_ids(ended) == [end]
    assert ended["choices"][0] | {"tokens": 0, "pieces": 0} == {
        "text": "", "finish_reason": "stop", "stop_reason": None, "tokens": 0, "pieces": 0}
    ignored = ask(engine, max_tokens=9, logit_bias=[[end, 100]], **GREEDY)
    assert token_ids(ignored) == [end] * 9 and ignored["choices"][0]["finish_reason"] == "length"
    assert ignored["choices"][0]["text"] == ""
    shown = ask(engine, max_tokens=2, logit_bias=[[end, 100]], skip_special_tokens=False, **GREEDY)
    assert shown["choices"][0]["text"] == "<|im_end|>" * 2


def is_ascii_word(token):
    text = checkpoints.tokenizer().decode([token]) if token < checkpoints.tokenizer().get_vocab_size() else ""
    return text.strip().isalpha() and text.isascii()


LETTERS = [[token, -1e4] for token in range(checkpoints.vocab_size()) if not is_ascii_word(token)]


@pytest.fixture(scope="module")
def letters(engine):
    """A greedy answer of ASCII letters and spaces, the texts of its tokens, and the request's
    sampling parameters."""
    sampling = GREEDY | {"max_tokens": 40, "logit_bias": LETTERS, "repetition_penalty": 1.5}
    answer = ask(engine, **sampling)
    texts = [checkpoints.tokenizer().decode([i]) for i in token_ids(answer)]
    assert answer["choices"][0]["text"] == "".join(texts)
    return texts, sampling


def test_stop_string_ends_the_answer(engine, letters):
    texts, sampling = letters
    text = "".join(texts)
    within = len("".join(texts[:20]))
    for begin, end in ((within, within + 1), (within - 1, within + 2), (within - 4, within + 3), (0, 2)):
        stop = text[begin:end]
        at = text.index(stop)
        needed = next(i for i in range(41) if stop in "".join(texts[:i]))
        choice = ask(engine, **sampling, stop=["never there", stop])["choices"][0]
        assert choice["text"] == text[:at]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
        assert len(choice["tokens"]) == needed
        kept = ask(engine, **sampling, stop=[stop], include_stop_str_in_output=True)["choices"][0]
        assert kept["text"] == text[:at] + stop


def test_incomplete_stop_string_stays_in_the_text(engine, letters):
    """The beginning of a stop string is held back, and delivered if the stop string does not
    complete."""
    texts, sampling = letters
    choice = ask(engine, **sampling, stop=["".join(texts)[-3:] + "#"])["choices"][0]
    assert choice["text"] == "".join(texts) and choice["finish_reason"] == "length"


def test_stop_strings_wait_for_min_tokens(engine, letters):
    texts, sampling = letters
    stop = "".join(texts)[:2]
    text = ask(engine, **sampling, stop=[stop], min_tokens=30)["choices"][0]["text"]
    assert text.startswith("".join(texts[:29]))


def test_logprobs_are_those_before_sampling_settings(references, engine):
    """Taken before bias, penalties and temperature; includes the drawn token even if it is not
    among the best."""
    size = references[NAME].base.config.vocab_size
    answer = ask(engine, temperature=1.9, seed=5, max_tokens=12, ignore_eos=True, logprobs=size, repetition_penalty=1.4,
                 logit_bias=[[3, 4]])
    tokens = token_ids(answer)
    expected = references[NAME].next_token_logits({"messages": PROMPT}, tokens)[1].log_softmax(-1)
    assert (logprob_rows(answer) - expected).abs().max() < 1e-4
    for i, token in enumerate(answer["choices"][0]["tokens"]):
        assert abs(token["logprob"] - expected[i, tokens[i]].item()) < 1e-4
    few = ask(engine, temperature=1.9, seed=5, max_tokens=12, ignore_eos=True, logprobs=3, repetition_penalty=1.4,
              logit_bias=[[3, 4]])["choices"][0]["tokens"]
    for own, token in zip(answer["choices"][0]["tokens"], few):
        assert (token["id"], token["logprob"]) == (own["id"], own["logprob"])
        assert token["top_ids"] == own["top_ids"][:3]
    assert ask(engine, max_tokens=1, logprobs=0, **GREEDY)["choices"][0]["tokens"][0]["top_ids"] == []


def test_seeded_samples_survive_preemption(models, engine):
    """A draw depends on the seed and its index, not on preemptions."""
    requests = [{"messages": PROMPT, "sampling": {"temperature": 0.9, "seed": i, "max_tokens": 50, "ignore_eos": True}}
                for i in range(12)]
    alone = [token_ids(engine.one(request)) for request in requests]
    with Engine(models[NAME], pool_memory=kv_bytes(models.memory[NAME], 20)) as little:
        answers = little.batch(requests)
        assert sum(answer["preemptions"] for answer in answers) > 0
    assert [token_ids(answer) for answer in answers] == alone


@pytest.mark.parametrize("sampling, word", [
    ({"temperature": -1}, "temperature"), ({"top_p": -0.1}, "top_p"), ({"top_p": 1.1}, "top_p"), ({"top_k": -2}, "top_k"),
    ({"min_p": 2}, "min_p"), ({"repetition_penalty": 0}, "repetition_penalty"), ({"presence_penalty": 3}, "presence_penalty"),
    ({"frequency_penalty": -3}, "frequency_penalty"), ({"n": 0}, "n must"), ({"n": 10**6}, "n must"),
    ({"max_tokens": -1}, "max_tokens"), ({"min_tokens": -1}, "min_tokens"), ({"max_tokens": 2, "min_tokens": 3}, "min_tokens"),
    ({"logprobs": 5000}, "logprobs"), ({"logprobs": -1}, "logprobs"), ({"max_tokens": 10**6}, "context length")])
def test_invalid_settings_are_refused(engine, sampling, word):
    with pytest.raises(EngineError, match=word):
        ask(engine, **sampling)


def test_bias_outside_the_vocabulary_is_refused(engine):
    with pytest.raises(EngineError, match="out of vocabulary"):
        ask(engine, logit_bias=[[checkpoints.vocab_size(), 1]])


def test_forbidding_every_token_fails_only_that_request(engine):
    """A request that forbids every token fails without affecting others."""
    with pytest.raises(EngineError):
        ask(engine, max_tokens=3, min_tokens=3, stop_token_ids=list(range(checkpoints.vocab_size())), **GREEDY)
    assert len(token_ids(ask(engine, max_tokens=2, **GREEDY))) == 2
