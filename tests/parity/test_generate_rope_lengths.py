"""Ropes whose frequencies change with the sequence length, beyond that change, against transformers' own cached
generation of each request on a fresh model, because its frequencies depend on earlier requests."""

import json

import pytest

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, generate, token_ids
from reference import Reference, logprob_rows
from test_generate_rope import as_transformers_5, configured, tokens_up_to
from test_training import PARITY, ReferenceTraining, request_of, targets_of, train
from wide import pairs

CHANGE = 48  # the longest sequence that uses the frequencies of short ones
COUNT = 24
BLOCK = 16
KINDS = ["longrope", "dynamic"]
# Crosses the change while generating; exactly at the change and next to it; beyond it.
LENGTHS = [20, 36, CHANGE - 1, CHANGE, CHANGE + 1, 70, 165]
TEXTS = ["text-grouped-tied", "llama3-scaled"]
PICTURES = ["llava-default", "vl-grouped-tied", "vl25-odd-windows"]


def with_rope(models, folder, name, kind):
    """Serves up to 192 tokens."""
    text = json.loads((models[name] / "config.json").read_text())
    text = text.get("text_config", text)
    half = text["hidden_size"] // text["num_attention_heads"] // 2
    fields = {"dynamic": {"factor": 4.0}, "longrope": {"short_factor": [1 + 0.3 * i for i in range(half)],
                                                       "long_factor": [2.0 + 0.7 * i for i in range(half)]}}[kind]
    scaling = {"type": kind} | fields
    if "mrope_section" in (text.get("rope_scaling") or text.get("rope_parameters") or {}):
        scaling["mrope_section"] = (text.get("rope_scaling") or text["rope_parameters"])["mrope_section"]
    more = {"original_max_position_embeddings": CHANGE, "max_position_embeddings": 192} if kind == "longrope" else {"max_position_embeddings": CHANGE}
    return configured(models, folder, name, rope_scaling=scaling, rope_parameters=None, rope_theta=10000.0, **more)


class Lone:
    """transformers' results for each request on a fresh model."""

    def __init__(self, folder, adapters=()):
        self.folder, self.adapters, self.known = folder, dict(adapters), {}
        reference = self.fresh()
        self.sampling = {"ignore_eos": True, "temperature": 0, "logprobs": reference.base.config.get_text_config().vocab_size,
                         "logit_bias": reference.family.no_media_tokens()}

    def fresh(self):
        reference = Reference(self.folder)
        for name, adapter in self.adapters.items():
            reference.load_adapter(name, adapter)
        return reference

    def request(self, prompt, count=COUNT, **more):
        return prompt | more | {"sampling": self.sampling | {"max_tokens": count}}

    def expect(self, request, answer):
        key = json.dumps(request)
        if key not in self.known:
            self.known[key] = self.fresh().generated(request, request["sampling"]["max_tokens"])
        tokens, logits = self.known[key]
        assert "error" not in answer, answer
        assert token_ids(answer) == tokens, len(answer["prompt_token_ids"])
        assert (logprob_rows(answer) - logits.log_softmax(-1)).abs().max() <= 1e-4, len(answer["prompt_token_ids"])


def cached(answer):
    return answer["usage"]["cached_tokens"]


def whole_blocks(tokens):
    return tokens // BLOCK * BLOCK


@pytest.mark.parametrize("name, kind", pairs(TEXTS, KINDS))
def test_prompts_of_all_lengths_equal_reference(models, tmp_path, name, kind):
    """Sequentially and together, with shared prefixes, in chunks, and again from the cache."""
    folder = with_rope(models, tmp_path / "model", name, kind)
    lone = Lone(folder)
    requests = [lone.request(tokens_up_to(length)) for length in LENGTHS]
    for options in [{}, {"max_num_batched_tokens": 11}, {"prefix_caching": False}]:
        with Engine(folder, **options) as engine:
            for request in requests:
                lone.expect(request, engine.one(request))
            for request, answer in zip(reversed(requests), engine.batch(list(reversed(requests)))):
                lone.expect(request, answer)
    as_transformers_5(folder)
    with Engine(folder) as engine:
        lone.expect(requests[-1], engine.one(requests[-1]))


@pytest.mark.parametrize("kind", KINDS)
def test_short_frequencies_alone_change_long_answers(models, tmp_path, kind):
    """If only the frequencies of short sequences are used, the answers beyond the change differ, and only
    those."""
    folder = with_rope(models, tmp_path / "model", "text-grouped-tied", kind)
    short = with_rope(models, tmp_path / "short", "text-grouped-tied", kind)
    config = json.loads((short / "config.json").read_text())
    config["max_position_embeddings"] = 192
    config["rope_scaling"]["long_factor"] = config["rope_scaling"].get("short_factor")
    (short / "config.json").write_text(json.dumps(config))
    lone = Lone(folder)
    with Engine(short) as engine:
        request = lone.request(tokens_up_to(CHANGE - COUNT))
        lone.expect(request, engine.one(request))
        for length in [CHANGE - 1, CHANGE + 1]:
            request = lone.request(tokens_up_to(length))
            with pytest.raises(AssertionError):
                lone.expect(request, engine.one(request))


@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_are_shared_only_with_equal_frequencies(models, tmp_path, kind):
    """Short prompts share as usual; long ones share only with equal frequencies, and therefore never with
    short ones."""
    folder = with_rope(models, tmp_path / "model", "text-grouped-tied", kind)
    lone = Lone(folder)

    def found(prompt):
        request = lone.request(prompt, 8)
        answer = engine.one(request)
        lone.expect(request, answer)
        return cached(answer), answer

    with Engine(folder) as engine:
        assert found(tokens_up_to(34))[0] == 0
        assert found(tokens_up_to(40))[0] == 32
        assert found(tokens_up_to(100))[0] == 0
        assert found(tokens_up_to(100))[0] == whole_blocks(99)
        hit, answer = found(tokens_up_to(120))
        assert hit == (whole_blocks(100) if kind == "longrope" else 0)
        # The next turn begins with the last turn's prompt and answer.
        turn = answer["prompt_token_ids"] + token_ids(answer)
        hit, _ = found({"tokens": [*turn, 5, 6]})
        assert hit == (whole_blocks(len(turn) - 1) if kind == "longrope" else 0)
        assert found(tokens_up_to(40))[0] == 32


@pytest.mark.parametrize("kind", KINDS)
def test_conversation_crossing_the_length_equals_reference(models, tmp_path, kind):
    """A conversation that grows past the change: no turn may reuse KV that an earlier one wrote with
    different frequencies."""
    folder = with_rope(models, tmp_path / "model", "text-grouped-tied", kind)
    lone = Lone(folder)
    with Engine(folder) as engine:
        tokens = tokens_up_to(12)["tokens"]
        while len(tokens) < 140:
            request = lone.request({"tokens": tokens}, 16)
            answer = engine.one(request)
            lone.expect(request, answer)
            again = engine.one(request)
            lone.expect(request, again)
            assert cached(again) == whole_blocks(len(tokens) - 1)
            tokens = [*tokens, *token_ids(answer), 3, 1, 4]


@pytest.mark.parametrize("caching, kind", pairs([True, False], KINDS))
def test_preemption_changes_no_answer(models, tmp_path, kind, caching):
    """When recomputed, a prompt and its answer are a single pass, which must use the frequencies
    of the original passes."""
    folder = with_rope(models, tmp_path / "model", "text-grouped-tied", kind)
    lone = Lone(folder)
    requests = [lone.request({"tokens": [(7 * i + n) % 250 for i in range(length)]}, 40)
                for n, length in enumerate([20, 30, 40, 46, 50, 64, 80, 30, 40, 100])]
    with Engine(folder) as engine:
        per_block = (64 << 20) // engine.model["kv_blocks"]
    with Engine(folder, pool_memory=14 * per_block, prefix_caching=caching, max_num_batched_tokens=48) as engine:
        answers = engine.batch(requests)
        assert sum(answer["preemptions"] for answer in answers) >= 2
    for request, answer in zip(requests, answers):
        lone.expect(request, answer)


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_equal_reference(models, tmp_path, kind):
    name = "llama3-scaled"
    folder = with_rope(models, tmp_path / "model", name, kind)
    adapters = {n: save_adapter(models.memory[name], tmp_path / n, 40 + i, rank=4) for i, n in enumerate("ab")}
    lone = Lone(folder, adapters)
    requests = [lone.request(tokens_up_to(length), adapters=[{"name": use} for use in uses])
                for length in [36, CHANGE, 90] for uses in ["", "a", "b", "ab"]]
    for policy in ["unmerged", "mixture"]:
        with Engine(folder, mode=policy) as engine:
            for adapter, path in adapters.items():
                engine.load(adapter, path)
            for request, answer in zip(requests, engine.batch(requests)):
                lone.expect(request, answer)


@pytest.mark.parametrize("name, kind", pairs(PICTURES, KINDS))
def test_pictures_count_in_positions_not_tokens(models, tmp_path, name, kind):
    """With M-RoPE the length is counted in positions, of which a picture takes fewer than tokens."""
    folder = with_rope(models, tmp_path / "model", name, kind)
    lone = Lone(folder)
    requests = [lone.request({"messages": [{"role": "user", "content": [picture(60, side, side), "What is it? " * words]}]}, 12)
                for side, words in [(40, 1), (90, 1), (60, 4), (60, 8)]]
    with Engine(folder) as engine:
        for _ in range(2):
            for request, answer in zip(requests, engine.batch(requests)):
                lone.expect(request, answer)


@pytest.mark.parametrize("kind", KINDS)
def test_prompt_length_limit_follows_the_rope(models, tmp_path, kind):
    """longrope: up to max_position_embeddings; dynamic: up to its product with the factor."""
    folder = with_rope(models, tmp_path / "model", "text-one-layer", kind)
    with Engine(folder) as engine, pytest.raises(EngineError, match="maximum context length is 192"):
        engine.one(tokens_up_to(193) | {"sampling": {"max_tokens": 1}})
    refused = generate(folder, "--prompt", "x", "--max-model-len", 193, check=False)
    assert refused.returncode == 1 and "max-model-len" in refused.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_training_uses_the_frequencies_of_each_sample(models, tmp_path, kind):
    """A sample is one pass with the frequencies of its own length, whatever it is batched with."""
    name = "llama3-scaled"
    folder = with_rope(models, tmp_path / "model", name, kind)
    init = save_adapter(models.memory[name], tmp_path / "init", 11, rank=4, **targets_of(name, "decoder"))
    made = [{"messages": [{"role": "user", "content": "What is this?" + " And then?" * (8 * (i % 3))}], "weight": 1, "answer": "a cat"}
            for i in range(6)]
    answer = train(request_of(folder, init, tmp_path / "out", made))
    reference = Reference(folder)
    lengths = [len(reference.prompt(sample).ids) for sample in made]
    assert min(lengths) < CHANGE - 10 < CHANGE < max(lengths)
    training = ReferenceTraining(reference, init, {}, PARITY)
    for step in range(PARITY["steps"]):
        batch = [made[(step * PARITY["batch"] + i) % len(made)] for i in range(PARITY["batch"])]
        loss, norm = training.step(batch)
        assert answer["losses"][step] == pytest.approx(loss, rel=1e-5), step
        assert answer["norms"][step] == pytest.approx(norm, rel=1e-4), step
