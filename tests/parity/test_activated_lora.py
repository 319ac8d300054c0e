"""Activated LoRA (alora_invocation_tokens) against PEFT: everything before the last invocation of a prompt is computed by the base model,
and shared."""

import peft
import pytest
import torch

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, token_ids
from reference import Reference, expect_same
from serving import Server
from test_generate_batching import kv_bytes

MODELS = ["text-one-layer", "llama2-biased", "vl-grouped-tied"]
LINEARS = ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]
LONG = "Is it red or is it green? What is in this picture, and what is not in it? "


class Activated(Reference):
    """Offsets refer to the prompt, as in PEFT's generate()."""

    def __init__(self, folder, name, adapter, invocation):
        super().__init__(folder)
        self.load_adapter(name, adapter)
        self.invocation = invocation

    def offset(self, ids):
        """Computed by PEFT itself."""
        return peft.tuners.lora.variants.calculate_alora_offsets(self.model.peft_config, self.model.active_adapter, torch.tensor([ids]))[0]

    @torch.no_grad()
    def forward(self, request, continuation=()):
        prompt = self.prompt(request)
        ids, offset = torch.tensor([prompt.ids + list(continuation)]), self.offset(prompt.ids)
        out = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, output_hidden_states=True,
                         alora_offsets=[offset and offset + len(continuation)], **self.family.token_types(ids), **prompt.inputs)
        return prompt, out.logits[0].float(), out.hidden_states[-1][0].float()

    @torch.no_grad()
    def greedy(self, request, count):
        prompt = self.prompt(request)
        ids = torch.tensor([prompt.ids])
        out = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=count,
                                  max_new_tokens=count, eos_token_id=None, pad_token_id=0,
                                  suppress_tokens=[token for token, _ in self.family.no_media_tokens()] or None,
                                  **self.family.token_types(ids), **prompt.inputs)
        return out[0, len(prompt.ids):].tolist()


class Case:
    def __init__(self, name, models, root):
        self.folder, self.model, self.base = models[name], models.memory[name], Reference(models[name])
        self.vocab, family = self.model.config.get_text_config().vocab_size, self.base.family
        self.images = family.has_images
        text = self.base.prompt({"messages": [{"role": "user", "content": LONG}]}).ids
        third = len(text) // 3
        self.invocations = {"judge": text[third:third + 1], "count": text[2 * third:2 * third + 3], "turn": text[-3:]}
        self.adapters, self.references = {}, {"": self.base}
        for i, (kind, invocation) in enumerate(self.invocations.items()):
            self.adapters[kind] = save_adapter(self.model, root / f"{name}-{kind}", 700 + i, rank=3 + i, task_type="CAUSAL_LM",
                                               targets=[*LINEARS, *(["lm_head"] if kind == "judge" and name == MODELS[0] else [])],
                                               alora_invocation_tokens=invocation)
            self.references[kind] = Activated(self.folder, kind, self.adapters[kind], invocation)
        self.adapters["plain"] = save_adapter(self.model, root / f"{name}-plain", 710, rank=4)
        self.references["plain"] = Reference(self.folder)
        self.references["plain"].load_adapter("plain", self.adapters["plain"])
        self.sampling = {"max_tokens": 9, "ignore_eos": True, "temperature": 0, "logprobs": self.vocab, "logit_bias": family.no_media_tokens()}

    def request(self, kind, *parts):
        content = [picture(60, 80, 60), *parts] if self.images and len(parts) > 1 else " ".join(parts)
        return {"messages": [{"role": "user", "content": content}], "sampling": self.sampling,
                "adapters": [{"name": kind}] if kind else []}

    def requests(self):
        """Prompts with no invocation, one, two, one at the end, and one after a picture."""
        made = []
        for kind in [*self.adapters, ""]:
            made += [self.request(kind, "What is it?"), self.request(kind, LONG, "Tell me."), self.request(kind, "And: " + LONG + LONG)]
        return made

    def expect(self, request, answer):
        assert "error" not in answer, answer
        expect_same(self.references[request["adapters"][0]["name"] if request["adapters"] else ""], request, answer)

    def engine(self, **options):
        engine = Engine(self.folder, **options)
        for kind, folder in self.adapters.items():
            assert engine.load(kind, folder)["warnings"] == [], kind
        return engine


@pytest.fixture(scope="module", params=MODELS)
def case(request, models, tmp_path_factory):
    return Case(request.param, models, tmp_path_factory.mktemp("activated"))


def test_references_differ(case):
    """The adapter changes logits after its invocation, and only there."""
    for kind in case.invocations:
        for text in ("What is it?", LONG):
            request = case.request(kind, text)
            prompt, adapted, _ = case.references[kind].forward(request)
            _, plain, _ = case.base.forward(request | {"adapters": []})
            begin = len(prompt.ids) - (case.references[kind].offset(prompt.ids) or 0)
            torch.testing.assert_close(adapted[:begin], plain[:begin], atol=1e-5, rtol=1e-5)
            assert begin == len(prompt.ids) or (adapted[begin:] - plain[begin:]).abs().max() > 0.05, (kind, text)


def expect_all(case, **options):
    with case.engine(**options) as engine:
        requests = case.requests()
        for _ in range(2):  # the second time with cached prefixes
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                case.expect(request, answer)


@pytest.mark.parametrize("mode", ["unmerged", "merged", "mixture"])
def test_mixed_batch_equals_references(case, mode):
    expect_all(case, mode=mode)


@pytest.mark.parametrize("options", [dict(mode="mixture", merge="inplace"), dict(mode="mixture", tensor_parallel_size=2),
                                     dict(max_num_batched_tokens=16), dict(kernels="reference")], ids=str)
def test_other_options_change_no_answer(models, tmp_path, options):
    """Chunks that begin and end anywhere before and after an invocation, ranks, and weights merged in place."""
    expect_all(Case(MODELS[2], models, tmp_path), **options)


def test_answers_equal_those_of_generate(case):
    with case.engine() as engine:
        for kind in case.invocations:
            for text in ("What is it?", LONG):
                request = case.request(kind, text, "Tell me.")
                assert token_ids(engine.one(request)) == case.references[kind].greedy(request, case.sampling["max_tokens"]), (kind, text)


def test_prefix_is_shared_with_the_base(case):
    """The base model's blocks before an invocation serve every such adapter, and vice versa."""
    parts = (LONG, LONG.replace("picture", "image").replace("green", "blue"))
    with case.engine() as engine:
        def cached(kind):
            answer = engine.one(case.request(kind, *parts))
            case.expect(case.request(kind, *parts), answer)
            ids = answer["prompt_token_ids"]
            begin = len(ids) - case.references[kind].offset(ids) if kind in case.invocations else 0
            return answer["usage"]["cached_tokens"], begin // 16 * 16, (len(ids) - 1) // 16 * 16
        hits, to_turn, _ = cached("turn")
        assert hits == 0 and to_turn > 48
        assert cached("")[0] == to_turn
        for kind in ("judge", "count"):
            hits, begin, _ = cached(kind)
            assert hits == begin > 0, kind
        for kind in ("turn", "judge", "count", ""):
            hits, _, whole = cached(kind)
            assert hits == whole, kind  # after their own invocations
        assert cached("plain")[0] == 0


def test_preemption_changes_no_answer(models, tmp_path):
    case = Case(MODELS[0], models, tmp_path)
    with case.engine(mode="mixture", pool_memory=kv_bytes(case.model, 34)) as engine:
        requests = []
        for i in range(10):
            request = case.request([*case.adapters, ""][i % 5], f"{i} {LONG}")
            requests.append(request | {"sampling": case.sampling | {"max_tokens": 60}})
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            case.expect(request, answer)
        assert engine.stats()["preemptions"] > 0


def test_prompt_scores_use_it_only_after_the_invocation(models, tmp_path):
    case = Case(MODELS[0], models, tmp_path)
    request = case.request("judge", LONG)
    prompt, logits, _ = case.references["judge"].forward(request)
    expected = logits.log_softmax(-1)
    server = Server({"model": case.folder, "judge": case.adapters["judge"]})
    try:
        body = {"model": "judge", "prompt": prompt.ids, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 1}
        scored = server.post("/v1/completions", body)["choices"][0]["prompt_logprobs"]
    finally:
        server.stop()
    for i in range(1, len(prompt.ids)):
        assert scored[i][str(prompt.ids[i])]["logprob"] == pytest.approx(expected[i - 1, prompt.ids[i]].item(), abs=1e-3), i


def test_scaled_adapter_equals_reference(models, tmp_path):
    case = Case(MODELS[0], models, tmp_path)
    with case.engine() as engine:
        request = case.request("count", LONG) | {"adapters": [{"name": "count", "scale": 0.5}]}
        answer = engine.one(request)
        layers = [m for m in case.references["count"].model.modules() if isinstance(m, peft.tuners.lora.LoraLayer)]
        for layer in layers:
            layer.scaling["count"] *= 0.5
        expect_same(case.references["count"], request, answer)
        for others in (["count", "plain"], ["plain", "count"], ["judge", "count"]):
            with pytest.raises(EngineError, match="acts from its invocation on .* used alone"):
                engine.one(request | {"adapters": [{"name": name} for name in others]})


@pytest.mark.parametrize("config, part", [
    (dict(alora_invocation_tokens=[]), "is empty: the adapter would never act"),
    (dict(alora_invocation_tokens=[3], targets=["q_proj"], modules_to_save=["embed_tokens"]), "embeddings or output layers of its own"),
    (dict(alora_invocation_tokens=[3], targets=["q_proj"], trainable_token_indices=[5]), "trainable_token_indices cannot be served"),
    (dict(alora_invocation_tokens=[3], targets=["qkv", "q_proj"]), "an adapter on .*visual"),
])
def test_incompatible_settings_are_refused(models, tmp_path, config, part):
    name = "vl-grouped-tied"
    folder = save_adapter(models.memory[name], tmp_path / "adapter", 720, rank=2, task_type="CAUSAL_LM", **config)
    with Engine(models[name]) as engine, pytest.raises(EngineError, match="alora_invocation_tokens.*" + part):
        engine.load("refused", folder)
