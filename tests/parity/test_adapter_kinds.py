"""Adapters beyond low-rank products of linears: on embeddings and output layers, whole matrices, token rows, and
biases. All of them, plain adapters and the base model in one batch, in all modes, against PEFT with each alone."""

import json
import re

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

import checkpoints
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError
from reference import Reference, expect_same
from releases import NEWEST
from serving import Server
from test_generate_batching import kv_bytes

MODELS = ["text-one-layer", "llama2-biased", "vl-grouped-tied"]  # the last two have tied embeddings
LINEARS = checkpoints.ALL_LINEARS
SOME = ["q_proj", "up_proj"]
KINDS = {
    "embedding": dict(rank=5, targets=[*SOME, "embed_tokens"]),
    "head": dict(rank=3, targets=[*SOME, "lm_head"], use_rslora=True),
    "both": dict(rank=4, targets=["embed_tokens", "lm_head"]),
    "lora-bias": dict(rank=3, targets=[*LINEARS, "lm_head"], lora_bias=True),
    "biases": dict(rank=2, targets=["q_proj", "v_proj"], bias="all"),
    "saved": dict(rank=3, targets=SOME, modules_to_save=["embed_tokens", "lm_head"]),
    "saved-head": dict(rank=2, targets=SOME, modules_to_save=["lm_head"]),
    "saved-tied": dict(rank=2, targets=SOME, modules_to_save=["embed_tokens"], ensure_weight_tying=True),
    "dora": dict(rank=4, targets=[*LINEARS, "lm_head"], use_dora=True),
    "dora-on-biases": dict(rank=2, targets=["q_proj", "v_proj", "down_proj"], use_dora=True, use_rslora=True, bias="all"),
    "dora-embedding": dict(rank=3, targets=[*SOME, "embed_tokens"], use_dora=True),
    "plain": dict(rank=6),
}
if NEWEST:  # PEFT 0.18 does not save the biases that it trains
    KINDS["lora-only"] = dict(rank=2, targets=["q_proj", "k_proj"], bias="lora_only")
    KINDS["blocks"] = dict(rank=4, targets=["q_proj", "o_proj", "v_proj"], use_bdlora=peft.tuners.lora.config.BdLoraConfig(
        target_modules_bd_a=["o_pr"], target_modules_bd_b=["q_proj"], nblocks=2, match_strict=False))
TEXT = [{"role": "user", "content": "What is in this picture? Is it red?"}]
IMAGE = [{"role": "user", "content": [picture(70, 90, 60), "What is this?"]}]


class Case:
    """A model, its adapter folders, and the reference answers of each adapter alone."""

    def __init__(self, name, model, folder, root):
        self.folder, self.model, self.base = folder, model, Reference(folder)
        self.vocab = model.config.get_text_config().vocab_size
        sampling = {"max_tokens": 10, "ignore_eos": True, "temperature": 0, "logprobs": self.vocab,
                    "logit_bias": self.base.family.no_media_tokens()}
        self.request = {"messages": IMAGE if self.base.family.has_images else TEXT, "sampling": sampling}
        text = Reference.prompt(self.base, {"messages": TEXT}).ids
        ids = sorted({text[3], text[-2], text[len(text) // 2], 5})[::-1]
        kinds = KINDS | {"tokens": dict(rank=2, targets=SOME, trainable_token_indices=ids)}
        if not model.config.get_text_config().tie_word_embeddings:
            kinds["tokens-of-both"] = dict(rank=2, targets=SOME, trainable_token_indices={"embed_tokens": ids, "lm_head": ids[1:]})
        self.adapters = {kind: save_adapter(model, root / f"{name}-{kind}", 900 + i, **config)
                         for i, (kind, config) in enumerate(kinds.items())}
        self.references = {}
        for kind, path in self.adapters.items():
            self.references[kind] = Reference(folder)
            self.references[kind].load_adapter(kind, path)

    def requests(self):
        """Every adapter with the model's prompt and with text, interleaved with the base model."""
        made = []
        for kind in self.adapters:
            made += [self.request | {"adapters": [{"name": kind}]},
                     self.request | {"adapters": [{"name": kind}], "messages": TEXT}]
        made[5:5] = [self.request]
        return made

    def expect(self, request, answer):
        assert "error" not in answer, answer
        uses = request.get("adapters", [])
        expect_same(self.references[uses[0]["name"]] if uses else self.base, request, answer)

    def engine(self, **options):
        engine = Engine(self.folder, **options)
        for kind, path in self.adapters.items():
            assert engine.load(kind, path)["warnings"] == [], kind
        return engine


@pytest.fixture(scope="module", params=MODELS)
def case(request, models, tmp_path_factory):
    return Case(request.param, models.memory[request.param], models[request.param], tmp_path_factory.mktemp("kinds"))


def test_references_differ(case):
    """Each kind changes the answer, so omitting a part would be detected."""
    base = case.base.next_token_logits(case.request | {"messages": TEXT}, [0])[1]
    for kind, reference in case.references.items():
        request = case.request | {"adapters": [{"name": kind}], "messages": TEXT}
        adapted = reference.next_token_logits(request, [0])[1]
        assert (adapted - base).abs().max() > 0.05, kind


@pytest.mark.parametrize("mode", ["unmerged", "merged", "mixture"])
def test_all_kinds_in_one_batch_equal_references(case, mode):
    with case.engine(mode=mode) as engine:
        requests = case.requests()
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            case.expect(request, answer)
        before = engine.stats()
        for request, answer in zip(requests, engine.batch(requests), strict=True):  # with cached prefixes
            case.expect(request, answer)
        after = engine.stats()
        assert after["prefix_hits"] > before["prefix_hits"]
        assert (after["merges"] == 0) == (mode == "unmerged")


def test_reference_kernels_give_the_same_answers(models, tmp_path):
    case = Case(MODELS[0], models.memory[MODELS[0]], models[MODELS[0]], tmp_path)
    with case.engine(kernels="reference") as engine:
        requests = case.requests()
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            case.expect(request, answer)


def test_small_pool_changes_no_answer(models, tmp_path):
    """Parts have to be read from their files again."""
    case = Case(MODELS[0], models.memory[MODELS[0]], models[MODELS[0]], tmp_path)
    with case.engine(mode="mixture", pool_memory=900 << 10, max_model_len=256) as engine:
        requests = case.requests()
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            case.expect(request, answer)
        assert engine.stats()["adapters_left"] > 0


def test_equal_output_layers_share_memory(models, tmp_path):
    """Two adapters with the same output layer: the pool has no room for two copies."""
    name, kind = "text-one-layer", "saved-head"
    head = "base_model.model.lm_head.weight"
    folders = {f"a{i}": save_adapter(models.memory[name], tmp_path / f"a{i}", 995 + i, **KINDS[kind]) for i in range(2)}
    folders["a1"] = changed(folders["a1"], tmp_path / "same", head, load_file(folders["a0"] / "adapter_model.safetensors")[head])
    requests = [{"messages": TEXT, "adapters": [{"name": adapter}],
                 "sampling": {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": models.memory[name].config.vocab_size}}
                for adapter in folders]
    with Engine(models[name], pool_memory=kv_bytes(models.memory[name], 44)) as engine:
        for adapter, folder in folders.items():
            engine.load(adapter, folder)
        for unload in (None, "a0"):
            if unload:
                engine.unload(unload)
            asked = [request for request in requests if request["adapters"][0]["name"] != unload]
            for request, answer in zip(asked, engine.batch(asked), strict=True):
                adapter = request["adapters"][0]["name"]
                reference = Reference(models[name])
                reference.load_adapter(adapter, folders[adapter])
                expect_same(reference, request, answer)
        assert engine.stats()["adapters_left"] == 0


def test_preemption_changes_no_answer(models, tmp_path):
    """Twelve sequences that outgrow forty blocks, half of which adapters take."""
    name = "text-one-layer"
    references = {"": Reference(models[name])}
    with Engine(models[name], mode="mixture", pool_memory=kv_bytes(models.memory[name], 40)) as engine:
        for i, kind in enumerate(("embedding", "dora")):
            folder = save_adapter(models.memory[name], tmp_path / kind, 985 + i, **KINDS[kind])
            engine.load(kind, folder)
            references[kind] = Reference(models[name])
            references[kind].load_adapter(kind, folder)
        sampling = {"max_tokens": 100, "ignore_eos": True, "temperature": 0, "logprobs": models.memory[name].config.vocab_size}
        requests = [{"messages": [{"role": "user", "content": f"{i} Is it red?"}], "sampling": sampling,
                     "adapters": [{"name": kind}] if kind else []} for i, kind in enumerate([*references] * 4)]
        for kind, request, answer in zip([*references] * 4, requests, engine.batch(requests), strict=True):
            expect_same(references[kind], request, answer)
        assert engine.stats()["preemptions"] > 0


def test_prompts_are_scored_with_the_adapters_own_output_layer(models, tmp_path):
    name = "text-one-layer"
    folder = save_adapter(models.memory[name], tmp_path / "saved", 950, **KINDS["saved"])
    reference = Reference(models[name])
    reference.load_adapter("a", folder)
    ids = [(7 * i + 3) % 300 for i in range(80)]  # more than one piece of a prompt
    expected = reference.forward({"tokens": ids, "adapters": [{"name": "a"}]})[1].log_softmax(-1)
    server = Server({"model": models[name], "a": folder})
    try:
        body = {"model": "a", "prompt": ids, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 2}
        scored = server.post("/v1/completions", body)["choices"][0]["prompt_logprobs"]
    finally:
        server.stop()
    for i in range(1, len(ids)):
        assert scored[i][str(ids[i])]["logprob"] == pytest.approx(expected[i - 1, ids[i]].item(), abs=1e-3), i


def test_replacing_values_refuse_scales_and_sums(models, tmp_path):
    name = "text-one-layer"
    with Engine(models[name]) as engine:
        for kind in ("saved-head", "embedding", "plain"):
            engine.load(kind, save_adapter(models.memory[name], tmp_path / kind, 960, **KINDS[kind]))
        request = {"messages": TEXT, "sampling": {"max_tokens": 1}}
        for uses in ([{"name": "saved-head", "scale": 0.5}], [{"name": "plain"}, {"name": "saved-head"}]):
            with pytest.raises(EngineError, match="saved-head replaces values .* used alone and at scale 1"):
                engine.one(request | {"adapters": uses})
        engine.one(request | {"adapters": [{"name": "plain", "scale": 0.5}, {"name": "embedding", "scale": 2}]})


def test_low_rank_vocabulary_updates_are_scaled_and_summed(models, tmp_path):
    name = "text-one-layer"
    reference = Reference(models[name])
    with Engine(models[name], mode="mixture") as engine:
        for i, kind in enumerate(("embedding", "head")):
            folder = save_adapter(models.memory[name], tmp_path / kind, 970 + i, **KINDS[kind])
            engine.load(kind, folder)
            reference.load_adapter(kind, folder)
        vocab = models.memory[name].config.vocab_size
        request = {"messages": TEXT, "sampling": {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logprobs": vocab},
                   "adapters": [{"name": "embedding", "scale": 0.5}, {"name": "head", "scale": -1}]}
        expect_same(reference, request, engine.one(request))


def changed(folder, out, key, value=None, **config):
    """A copy with a different tensor under this key; None: without it."""
    tensors = load_file(folder / "adapter_model.safetensors")
    tensors.pop(key, None)
    if value is not None:
        tensors[key] = value
    out.mkdir()
    save_file(tensors, out / "adapter_model.safetensors")
    written = json.loads((folder / "adapter_config.json").read_text()) | config
    (out / "adapter_config.json").write_text(json.dumps(written))
    return out


def test_incompatible_adapter_is_refused_by_name(models, tmp_path):
    name = "text-one-layer"
    model = models.memory[name]
    vocab, hidden = model.config.vocab_size, model.config.hidden_size
    saved = save_adapter(model, tmp_path / "saved", 980, **KINDS["saved"])
    tokens = save_adapter(model, tmp_path / "tokens", 981, rank=2, targets=SOME, trainable_token_indices=[3, 4])
    head, rows = "base_model.model.lm_head.weight", "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    broken = torch.full((vocab, hidden), 1.0)
    broken[-1, -1] = float("nan")
    cases = {
        f"embedding is of {vocab} tokens, its output layer of {vocab + 3}": (saved, head, torch.ones(vocab + 3, hidden), {}),
        r"lm_head .its whole weight of shape \[": (saved, head, torch.ones(vocab, hidden + 1), {}),
        "lm_head.weight.* has values that are not finite": (saved, head, broken, {}),
        "modules_to_save names lm_head": (saved, head, None, {}),
        rf"rows of model.embed_tokens have shape \[3, {hidden}\]": (tokens, rows, torch.ones(3, hidden), {}),
        f"the token {vocab + 1}, but model.embed_tokens of the base model has {vocab}, and the file not all": (
            tokens, rows, torch.ones(2, hidden), {"trainable_token_indices": [3, vocab + 1]}),
        f"embedding is of {vocab + 1} tokens, its output layer of {vocab}": (
            tokens, rows, torch.ones(2, hidden), {"trainable_token_indices": [3, vocab]}),
    }
    with Engine(models[name]) as engine:
        for i, (message, (folder, key, value, config)) in enumerate(cases.items()):
            with pytest.raises(EngineError) as error:
                engine.load("x", changed(folder, tmp_path / str(i), key, value, **config))
            assert re.search(message, str(error.value)), (message, str(error.value))
