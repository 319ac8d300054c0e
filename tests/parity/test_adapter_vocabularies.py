"""Adapters with their own tokens, against PEFT on a base model with resized embeddings: prompts with the new tokens, and answers that
may contain them, along with the base model and plain adapters, whose answers never do."""

import copy
import json
import warnings

import peft
import pytest
import tokenizers
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError
from reference import Prompt, Reference, expect_same
from serving import Server

MODELS = ["text-one-layer", "text-grouped-tied", "vl-grouped-tied"]  # the last two have tied embeddings
SOME = ["q_proj", "up_proj"]
NEW = ["<|scene|>", "<|end_of_scene|>", "<tool>"]  # the last one is not a special token
TEXT = "Is it <|scene|>red<|end_of_scene|> or<tool> green?"
KINDS = {  # by the number of tokens that the matrices have beyond the tokenizer's
    "whole": dict(rank=3, targets=SOME, modules_to_save=["embed_tokens", "lm_head"]),
    "resized": dict(rank=2, targets=SOME),  # PEFT saves both matrices, because the vocabulary size changed
    "rows": dict(rank=2, targets=SOME, trainable_token_indices="new"),
    "embedding-lora": dict(rank=2, targets=[*SOME, "embed_tokens"]),
    "head-lora": dict(rank=3, targets=[*SOME, "lm_head"], use_rslora=True),
    "lora-on-both": dict(rank=2, targets=["q_proj", "embed_tokens", "lm_head"]),
}


def with_new_tokens(family, more=NEW):
    made = tokenizers.Tokenizer.from_str(family.tokenizer().to_str())
    made.add_tokens([AddedToken(text, special=text.startswith("<|"), normalized=False) for text in more])
    return made


@torch.no_grad()
def resized(model, tokens):
    made = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.resize_token_embeddings(tokens, mean_resizing=False)
    generator = torch.Generator().manual_seed(7)
    for layer in {id(layer.weight): layer for layer in (made.get_input_embeddings(), made.get_output_embeddings())}.values():
        rows = layer.weight[min(tokens, model.config.get_text_config().vocab_size):]
        rows.copy_(torch.randn(rows.shape, generator=generator) * layer.weight.std())
    return made.eval()


def save_resized(base, out, seed, tokens, vocabulary, folder, trainable_token_indices=None, **config):
    """What a trainer does: resizes the base model, and saves an adapter along with the
    tokenizer."""
    larger = resized(base, tokens)
    if trainable_token_indices:
        config["trainable_token_indices"] = [3, *range(vocabulary.get_vocab_size() - len(NEW), tokens)]
    save_adapter(larger, out, seed, **config)
    # What PEFT's save_embedding_layers "auto" does if it finds the base model's configuration.
    model = peft.PeftModel.from_pretrained(larger, out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.peft_config["default"].base_model_name_or_path = str(folder)
        model.save_pretrained(out, save_embedding_layers=True)
    vocabulary.save(str(out / "tokenizer.json"))
    return out


class Case:
    def __init__(self, name, models, root):
        self.name, self.folder, self.model = name, models[name], models.memory[name]
        self.base = Reference(self.folder)
        self.family, self.vocab = self.base.family, self.model.config.get_text_config().vocab_size
        self.tokenizer = with_new_tokens(self.family)
        self.ids = [self.tokenizer.token_to_id(text) for text in NEW]
        tied = self.model.config.get_text_config().tie_word_embeddings
        self.kinds = {kind: config for kind, config in KINDS.items() if tied or kind not in ("embedding-lora", "head-lora")}
        # Within the padding of the base model's matrices, beyond it, and cut to the tokenizer's
        # size.
        self.sizes = {"whole": self.vocab + 5, "resized": self.tokenizer.get_vocab_size(), "rows": self.vocab, "embedding-lora": self.vocab + 1,
                      "head-lora": self.vocab + 2, "lora-on-both": self.vocab + 3}
        self.adapters = {kind: save_resized(self.model, root / kind, 300 + i, self.sizes[kind], self.tokenizer, self.folder, **config)
                         for i, (kind, config) in enumerate(self.kinds.items())}
        self.adapters["plain"] = save_adapter(self.model, root / "plain", 340, rank=4)
        self.references = {kind: self.reference(kind) for kind in self.adapters}

    def reference(self, kind):
        made = Reference(self.folder)
        if kind in self.sizes:
            made.base.resize_token_embeddings(self.sizes[kind])
        made.load_adapter(kind, self.adapters[kind])
        tokenizer = self.tokenizer if kind in self.sizes else made.family.tokenizer()

        def prompt(request):
            if "prompt" in request:
                return Prompt(tokenizer.encode(request["prompt"]).ids)
            kept, made.family.tokenizer = made.family.tokenizer, lambda: tokenizer
            try:
                return Prompt(*own(request["messages"], True, made.processor))
            finally:
                made.family.tokenizer = kept
        made.family = copy.copy(made.family)
        own = made.family.prompt
        made.prompt = prompt
        return made

    def request(self, kind, **prompt):
        vocab = self.sizes.get(kind, self.vocab)
        sampling = {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logprobs": vocab, "logit_bias": self.family.no_media_tokens()}
        return {"sampling": sampling, "adapters": [{"name": kind}] if kind else []} | prompt

    def requests(self):
        messages = [{"role": "user", "content": [picture(60, 80, 60), TEXT] if self.family.has_images else TEXT}]
        made = []
        for kind in [*self.adapters, ""]:
            made += [self.request(kind, prompt=TEXT), self.request(kind, messages=messages)]
        return made

    def expect(self, request, answer):
        assert "error" not in answer, answer
        kind = request["adapters"][0]["name"] if request["adapters"] else ""
        expect_same(self.references[kind] if kind else self.base, request, answer)

    def engine(self, **options):
        engine = Engine(self.folder, **options)
        for kind, folder in self.adapters.items():
            assert engine.load(kind, folder)["warnings"] == [], kind
        return engine


@pytest.fixture(scope="module", params=MODELS)
def case(request, models, tmp_path_factory):
    return Case(request.param, models, tmp_path_factory.mktemp("vocabularies"))


def expect_all(case, times=1, **options):
    with case.engine(**options) as engine:
        requests = case.requests()
        for _ in range(times):
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                case.expect(request, answer)


@pytest.mark.parametrize("mode", ["unmerged", "mixture"])
def test_all_kinds_in_one_batch_equal_references(case, mode):
    expect_all(case, times=2, mode=mode)  # the second time with cached prefixes


@pytest.mark.parametrize("options", [dict(mode="merged", tensor_parallel_size=2), dict(kernels="reference"),
                                     dict(mode="mixture", pool_memory=1200 << 10, max_model_len=256)], ids=str)
def test_other_options_change_no_answer(models, tmp_path, options):
    """The last option set: a pool that cannot hold all parts."""
    expect_all(Case(MODELS[2], models, tmp_path), **options)


def test_sums_are_refused(case):
    with case.engine() as engine:
        for others in (["whole", "plain"], ["resized", "whole"]):
            with pytest.raises(EngineError, match="has tokens of its own, so it can only be used alone"):
                engine.one(case.request("", prompt=TEXT) | {"adapters": [{"name": name} for name in others]})


@pytest.fixture(scope="module")
def text_case(models, tmp_path_factory):
    return Case(MODELS[0], models, tmp_path_factory.mktemp("served"))


TEMPLATE = "{% for m in messages %}<|scene|>{{ m.content }}<|end_of_scene|>{% endfor %}{{ eos_token }}<tool>"


@pytest.fixture(scope="module")
def server(text_case, tmp_path_factory):
    """"whole" has its own template and end token."""
    folder = text_case.adapters["whole"]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, "eos_token": "<|end_of_scene|>"}))
    made = Server({"model": text_case.folder} | text_case.adapters, "--allow-runtime-lora-updating")
    yield made
    made.stop()


def test_tokenize_uses_the_vocabulary_of_the_named_model(text_case, server):
    own, base = text_case.tokenizer, text_case.family.tokenizer()
    for kind in [*text_case.adapters, "tiny"]:
        vocabulary = own if kind in text_case.sizes else base
        ids = server.post("/tokenize", {"model": kind, "prompt": TEXT})["tokens"]
        assert ids == vocabulary.encode(TEXT).ids, kind
        assert server.post("/detokenize", {"model": kind, "tokens": ids})["prompt"] == TEXT
    status, text = server.request("POST", "/detokenize", {"model": "tiny", "tokens": [text_case.vocab]})
    assert status == 400 and "out of vocabulary" in text
    echo = server.post("/v1/completions", {"model": "whole", "prompt": own.encode(TEXT).ids, "max_tokens": 1, "echo": True})
    assert echo["choices"][0]["text"].startswith(TEXT)


def test_adapter_uses_the_template_of_its_folder(text_case, server):
    """Only adapters with their own tokens use their own template: prompts for others are those
    of the base model."""
    chat = {"messages": [{"role": "user", "content": "Hi <tool>"}]}
    ids = server.post("/tokenize", chat | {"model": "whole"})["tokens"]
    assert ids == text_case.tokenizer.encode("<|scene|>Hi <tool><|end_of_scene|><|end_of_scene|><tool>").ids
    base = server.post("/tokenize", chat | {"model": "tiny"})["tokens"]
    assert server.post("/tokenize", chat | {"model": "plain"})["tokens"] == base
    rendered = text_case.family.render(chat["messages"])
    assert server.post("/tokenize", chat | {"model": "rows"})["tokens"] == text_case.tokenizer.encode(rendered).ids != base


def test_new_tokens_are_sampled_and_written(text_case, server):
    scene, end, tool = text_case.ids
    body = {"model": "whole", "prompt": TEXT, "max_tokens": 3, "temperature": 0, "logprobs": 1}
    choice = server.post("/v1/completions", body | {"logit_bias": {str(tool): 100}})["choices"][0]
    assert choice["text"] == "<tool>" * 3 and choice["logprobs"]["tokens"] == ["<tool>"] * 3
    choice = server.post("/v1/completions", body | {"logit_bias": {str(scene): 100}, "skip_special_tokens": False})["choices"][0]
    assert choice["text"] == "<|scene|>" * 3
    ended = server.post("/v1/completions", body | {"logit_bias": {str(end): 100}})  # the eos_token of its tokenizer
    assert ended["choices"][0]["finish_reason"] == "stop" and ended["usage"]["completion_tokens"] == 1
    stopped = server.post("/v1/completions", body | {"logit_bias": {str(tool): 100}, "stop_token_ids": [tool]})["choices"][0]
    assert stopped["stop_reason"] == tool
    going = server.post("/v1/completions", body | {"model": "resized", "logit_bias": {str(end): 100}})
    assert going["usage"]["completion_tokens"] == 3


def test_structured_answers_may_use_its_tokens(text_case, server):
    """A text that is one token for the adapter and several for others."""
    for kind in ("whole", "rows", "plain", "tiny"):
        body = {"model": kind, "prompt": TEXT, "max_tokens": 30, "temperature": 0, "structured_outputs": {"choice": ["<tool> red"]}}
        answer = server.post("/v1/completions", body)
        assert answer["choices"][0]["text"] == "<tool> red", kind
    body["structured_outputs"] = {"json": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}}
    answer = server.post("/v1/completions", body | {"model": "whole", "max_tokens": 60})["choices"][0]
    assert answer["finish_reason"] != "stop" or "a" in json.loads(answer["text"])


def test_replacing_changes_the_tokens(text_case, server, tmp_path):
    def load(name, path, **more):
        status, text = server.request("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(path), **more})
        assert status == 200, text
    load("changing", text_case.adapters["rows"])
    ask = {"model": "changing", "prompt": "a <tool>"}
    first = server.post("/tokenize", ask)["tokens"]
    load("changing", text_case.adapters["plain"], load_inplace=True)
    assert server.post("/tokenize", ask)["tokens"] == text_case.family.tokenizer().encode("a <tool>").ids != first
    load("changing", text_case.adapters["resized"], load_inplace=True)
    assert server.post("/tokenize", ask)["tokens"] == first


def test_prompts_are_scored_with_its_logits(text_case, server):
    reference, size = text_case.references["whole"], text_case.sizes["whole"]
    ids = [(11 * i + 5) % size for i in range(70)]
    with torch.no_grad(), reference.adapted([{"name": "whole"}]):
        expected = reference.base(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
    body = {"model": "whole", "prompt": ids, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 1}
    scored = server.post("/v1/completions", body)["choices"][0]["prompt_logprobs"]
    for i in range(1, len(ids)):
        assert scored[i][str(ids[i])]["logprob"] == pytest.approx(expected[i - 1, ids[i]].item(), abs=1e-3), i


def changed(folder, out, tokenizer=None, **tensors):
    out.mkdir()
    kept = load_file(folder / "adapter_model.safetensors")
    for key, value in tensors.items():
        kept = {name: value(old) if key in name else old for name, old in kept.items()}
    save_file({name: value.contiguous() for name, value in kept.items() if value is not None}, out / "adapter_model.safetensors")
    for name in ("adapter_config.json", "tokenizer.json"):
        (out / name).write_text((folder / name).read_text())
    if tokenizer:
        (out / "tokenizer.json").write_text(json.dumps(tokenizer(json.loads((out / "tokenizer.json").read_text()))))
    return out


def test_incompatible_vocabulary_is_refused_by_name(text_case, tmp_path):
    whole = text_case.adapters["whole"]
    size = text_case.sizes["whole"]

    def with_base_token(tokenizer):
        """A base token under a different id."""
        tokenizer["added_tokens"][-1]["content"], tokenizer["added_tokens"][0]["content"] = (
            tokenizer["added_tokens"][0]["content"], tokenizer["added_tokens"][-1]["content"])
        return tokenizer
    cases = {
        f"embedding is of {size} tokens, its output layer of {size - 1}": dict(lm_head=lambda old: old[:-1]),
        "the file has two weights of .*lm_head": {"lm_head.modules_to_save": lambda old: old + 1},
        "has the base model's token .* as": dict(tokenizer=with_base_token),
        "tokenizer.json: .*model": dict(tokenizer=lambda old: old | {"model": {"type": "WordLevel"}}),
    }
    with Engine(text_case.folder) as engine:
        for i, (message, change) in enumerate(cases.items()):
            with pytest.raises(EngineError, match=message):
                engine.load(f"a{i}", changed(whole, tmp_path / str(i), **change))
        folder = changed(whole, tmp_path / "slow")
        (folder / "tokenizer.json").unlink()
        assert engine.load("none", folder)["warnings"] == []  # its new tokens have no text
        rows = changed(text_case.adapters["rows"], tmp_path / "rows")
        (rows / "tokenizer.json").unlink()
        (rows / "added_tokens.json").write_text(json.dumps({"<tool>": text_case.ids[2]}))
        with pytest.raises(EngineError, match="save the adapter's tokenizer as a fast one"):
            engine.load("rows", rows)
        plain = changed(whole, tmp_path / "plain")
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (plain / name).write_bytes((text_case.adapters["plain"] / name).read_bytes())
        engine.load("plain", plain)  # its tokens have the same meaning as in the base model, so its tokenizer is not read
        text_case.expect(text_case.request("plain", prompt=TEXT), engine.one(text_case.request("plain", prompt=TEXT)))
