"""A request's answer must not depend on other requests, chunked prefill or preemption (fp32)."""

import itertools
import random

import pytest
import torch

import checkpoints
from checkpoints import save_adapter
from pictures import clip, picture
from programs import DEVICE, Engine, token_ids, wait_until_idle
from reference import NO_MEDIA_TOKENS, expect_same

SAMPLING = {"max_tokens": 40, "ignore_eos": True, "temperature": 0}
TEXT = [{"role": "user", "content": "What is in this picture?"}]
LONG = [{"role": "user", "content": "the image shows a red circle left of two small squares " * 5}]
IMAGE = [{"role": "user", "content": [picture(60, 110, 90), "What is this?"]}]
IMAGES = [{"role": "user", "content": ["1:", picture(61, 90, 60), "2:", picture(62, 40, 120), picture(60, 110, 90)]}]
VIDEO = [{"role": "user", "content": [clip(63, 6, 60, 60), "What happens?"]}]
PROMPTS = [TEXT, LONG, IMAGE, IMAGES, VIDEO]


def kv_bytes(model, blocks, dtype_bytes=4):
    config = model.config.get_text_config()
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    values = head if DEVICE == "cuda" else (head + 15) // 16 * 16  # per token, rounded up to whole panels on CPUs
    kv = 16 * config.num_hidden_layers * config.num_key_value_heads * (head + values) * dtype_bytes
    widest = max(m.in_features for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) and name != "lm_head")
    return blocks * max(kv, 16 * max(widest, 64) * dtype_bytes)  # a pool block can hold any panel of an adapter


def firm_length(answer):
    """Number of tokens before the first near tie, where fp32 rounding could change the choice."""
    for i, token in enumerate(answer["choices"][0]["tokens"]):
        if token["top_logprobs"][0] - token["top_logprobs"][1] < 2e-4:
            return i
    return len(answer["choices"][0]["tokens"])


def expect_answers(alone, answers):
    """Each answer must equal the one that the request gets alone."""
    compared = 0
    for own, answer in zip(alone, answers, strict=True):
        if "cancelled" in answer:
            continue
        length = firm_length(own)
        assert answer["prompt_token_ids"] == own["prompt_token_ids"]
        assert token_ids(answer)[:length] == token_ids(own)[:length]
        assert len(token_ids(answer)) == len(token_ids(own))
        compared += length
    total = sum(len(token_ids(own)) for own, answer in zip(alone, answers) if "cancelled" not in answer)
    assert compared >= 0.95 * total


@pytest.mark.parametrize("name, budget", [*(("vl-grouped-tied", budget) for budget in (1, 7, 16, 50)), ("vl3-grouped-tied", 7)])
def test_chunked_prefill_equals_reference(models, references, name, budget):
    """Chunked prefill of several prompts with images, against the reference at every step."""
    sampling = SAMPLING | {"max_tokens": 6, "logit_bias": NO_MEDIA_TOKENS,
                           "logprobs": models.memory[name].config.text_config.vocab_size}
    requests = [{"messages": messages, "sampling": sampling} for messages in PROMPTS]
    with Engine(models[name], max_num_batched_tokens=budget, prefix_caching=False) as engine:
        for request, answer in zip(requests, engine.batch(requests)):
            expect_same(references[name], request, answer)
        prompt = sum(len(references[name].prompt(request).ids) for request in requests)
        assert engine.stats()["steps"] >= prompt / budget


@pytest.mark.parametrize("name, caching", [("vl-small-patch", True), ("vl-small-patch", False), ("vl3-deeper-tower", True)])
def test_preemption_changes_no_answer(models, references, name, caching):
    """Twenty requests with memory for about three: they are preempted and recomputed, with unchanged
    answers."""
    model = models.memory[name]
    sampling = SAMPLING | {"logit_bias": NO_MEDIA_TOKENS, "logprobs": model.config.text_config.vocab_size}
    # Equal prompts would share blocks.
    requests = [{"messages": [{"role": "system", "content": f"Request {i}."}, *messages], "sampling": sampling}
                for i, messages in enumerate(PROMPTS * 4)]
    with Engine(models[name], pool_memory=kv_bytes(model, 40), prefix_caching=caching,
                max_num_batched_tokens=64) as engine:
        assert engine.model["kv_blocks"] == 40
        answers = engine.batch(requests)
        assert sum(answer["preemptions"] for answer in answers) == engine.stats()["preemptions"] > 0
        wait_until_idle(engine)
    for request, answer in zip(requests, answers):
        expect_same(references[name], request, answer)


@pytest.mark.parametrize("name, kernels", [("qwen3-windows", "native"), ("mistral-windows", "native"), ("text-windows", "native"),
                                           ("text-windows", "reference")])
def test_sliding_windows_survive_chunks_preemptions_and_cached_prefixes(models, references, name, kernels):
    """Sequences longer than the windows; chunks, recomputed tokens and cached prefixes begin and end inside a window."""
    model = models.memory[name]
    sampling = SAMPLING | {"max_tokens": 60, "logit_bias": references[name].family.no_media_tokens(), "logprobs": model.config.vocab_size}
    # Short prompts get long answers: they grow after admission, which causes preemptions.
    texts = [f"{i} " + LONG[0]["content"] * (i % 5 == 0) for i in range(12)]
    requests = [{"messages": [{"role": "user", "content": text}], "sampling": sampling} for text in texts]
    with Engine(models[name], pool_memory=kv_bytes(model, 27), max_num_batched_tokens=37, kernels=kernels) as engine:
        for asked in (requests, requests[::-1]):
            for request, answer in zip(asked, engine.batch(asked), strict=True):
                expect_same(references[name], request, answer)
        stats = engine.stats()
        assert stats["preemptions"] > 0 and stats["prefix_hits"] > 0, stats


def test_last_block_is_usable(models, references):
    """A sequence may fill the whole KV cache; one more token is refused with a message that names the
    limit."""
    name = "text-grouped-tied"
    model = models.memory[name]
    with Engine(models[name], pool_memory=kv_bytes(model, 6)) as engine:
        assert engine.model["max_model_len"] == 96
        sampling = {"max_tokens": 96 - 30, "ignore_eos": True, "temperature": 0, "logprobs": model.config.vocab_size}
        request = {"tokens": list(range(30)), "sampling": sampling}
        expect_same(references[name], request, engine.one(request))
        error = engine.batch([{"tokens": list(range(31)), "sampling": sampling}])[0]["error"]
        assert "96" in error["message"] and "97" in error["message"]


@pytest.fixture(scope="module")
def many(models, tmp_path_factory):
    """16 adapters of mixed ranks on one model, 64 requests with them and with the base model, and their answers when
    run alone."""
    name = "vl-grouped-tied"
    model, root = models.memory[name], tmp_path_factory.mktemp("many")
    ranks = [1, 3, 8, 64, 2, 5, 16, 32, 1, 7, 12, 64, 4, 9, 24, 48]
    rng = random.Random(5)
    adapters = {}
    for i, rank in enumerate(ranks):
        targets = checkpoints.ALL_LINEARS if i % 2 else rng.sample(checkpoints.ALL_LINEARS, 3)
        adapters[f"a{i}"] = save_adapter(model, root / f"a{i}", 900 + i, rank=rank, targets=targets, use_rslora=i % 3 == 0)
    requests = []
    for i in range(64):
        uses = [] if i % 17 == 16 else [{"name": f"a{i % 17}", "scale": [1, 1, 0.5][i % 3]}]
        # Short prompts get long answers: they grow most after admission, which causes preemptions.
        length = rng.choice([3, 17, 64] if i % len(PROMPTS) else [50, 160])
        sampling = SAMPLING | {"logprobs": 2, "max_tokens": length}
        requests.append({"messages": PROMPTS[i % len(PROMPTS)], "adapters": uses, "sampling": sampling})
    with Engine(models[name], prefix_caching=False) as engine:
        load_all(engine, adapters)
        alone = [engine.one(request) for request in requests]
    assert len({tuple(token_ids(a)[:3]) for a in alone}) > 30  # the answers differ
    return adapters, requests, alone


def load_all(engine, adapters):
    for name, folder in adapters.items():
        engine.load(name, folder)


@pytest.mark.parametrize("options", [
    {"max_num_seqs": 64, "threads": 2},
    {"max_num_seqs": 24, "max_num_batched_tokens": 61},
    {"max_num_seqs": 64, "max_num_batched_tokens": 128, "blocks": 150},
    {"max_num_seqs": 64, "max_num_batched_tokens": 128, "blocks": 150, "swap_space": 4 << 20},
    {"max_num_seqs": 9, "max_num_batched_tokens": 40, "blocks": 130, "prefix_caching": False},
], ids=lambda o: "-".join(map(str, o.values())))
def test_answers_do_not_depend_on_concurrent_requests(models, many, options):
    """64 concurrent requests with 16 adapters and the base model, some of which are cancelled. A pool of 130 or 150
    blocks holds either two of the largest adapters or their requests, so adapters are constantly evicted and reloaded."""
    name = "vl-grouped-tied"
    adapters, requests, alone = many
    crowded, blocks = "blocks" in options, options.get("blocks", 4000)
    options = {k: v for k, v in options.items() if k != "blocks"}
    with Engine(models[name], pool_memory=kv_bytes(models.memory[name], blocks), **options) as engine:
        load_all(engine, adapters)
        for order in range(2):
            shuffled = random.Random(order).sample(range(64), 64)
            asked = [requests[i] | ({"cancel_after": k % 11} if k % 7 == 3 else {}) for k, i in enumerate(shuffled)]
            answers = engine.batch(asked)
            assert sum("cancelled" in answer for answer in answers) > 0
            expect_answers([alone[i] for i in shuffled], answers)
        if crowded:
            assert engine.stats()["adapters_left"] > 2 * len(adapters)
        wait_until_idle(engine)


def test_requests_may_join_running_ones(models, many):
    """Eight waves, each sent while the previous ones are running."""
    adapters, requests, alone = many
    with Engine(models["vl-grouped-tied"], max_num_batched_tokens=100) as engine:
        load_all(engine, adapters)
        for wave in range(8):
            engine.submit(requests[8 * wave:8 * wave + 8])
        expect_answers(alone, engine.collect())


def test_full_queue_refuses_without_affecting_others(models, many):
    adapters, requests, alone = many
    with Engine(models["vl-grouped-tied"], max_waiting=5, max_num_seqs=2, media_workers=1) as engine:
        load_all(engine, adapters)
        answers = engine.batch(requests)
        refused = [answer for answer in answers if "error" in answer]
        assert 0 < len(refused) < 64 and all("queue is full" in answer["error"]["message"] for answer in refused)
        served = [(own, answer) for own, answer in zip(alone, answers) if "error" not in answer]
        expect_answers(*zip(*served))
        wait_until_idle(engine)


def test_bad_request_fails_alone(models, many):
    """An invalid picture and an overlong prompt fail without affecting other requests."""
    adapters, requests, alone = many
    bad = [{"messages": [{"role": "user", "content": [{"image": "data:image/png;base64,AAAA"}, "x"]}]},
           {"tokens": [1] * 4000}, {"tokens": [10**6]},
           {"messages": [{"role": "user", "content": [{"image": "file:///none.png"}]}]}]
    with Engine(models["vl-grouped-tied"]) as engine:
        load_all(engine, adapters)
        mixed = list(itertools.chain.from_iterable([requests[4 * i:4 * i + 4] + [bad[i]] for i in range(4)]))
        answers = engine.batch(mixed)
        assert all("error" in answer for answer in answers[4::5])
        expect_answers(alone[:16], [answer for i, answer in enumerate(answers) if i % 5 != 4])
