"""Adapters on the vision tower, on the projector or merger, and everywhere, against PEFT in fp32; also the
reuse of visual embeddings."""

import pytest

import checkpoints
from checkpoints import save_adapter
from pictures import clip, picture
from programs import Engine, wait_until_idle
from reference import Reference, expect_same

MODELS = ["vl-grouped-tied", "vl25-windows", "llava-default", "llava-full-states", "vl3-grouped-tied", "smolvlm-tied", "internvl-qwen3",
          "next-mistral", "onevision-tied", "mistral3-tied"]
TOWER = r".*(visual\.blocks|vision_tower|vision_model)\..*\.(qkv|proj|fc1|fc2|linear_fc[12]|[a-z]+_proj)"
PROJECTOR = r".*(visual\.merger\.mlp\.[02]|merger.*\.linear_fc[12]|multi_modal_projector\.(linear_[12]|.*merging_layer)|connector\..*\.proj)"
LANGUAGE = r".*(language|text)_model\.layers\..*_proj"
ADAPTERS = {
    "language": dict(rank=4, targets=LANGUAGE),
    "projector": dict(rank=3, targets=PROJECTOR),
    "tower": dict(rank=5, targets=TOWER),
    "tower-rank-40": dict(rank=40, use_rslora=True, targets=TOWER),
    "all": dict(rank=6, targets="all-linear"),
}
ONE = [{"role": "user", "content": [picture(60, 80, 60), "What is this?"]}]
SEVERAL = [{"role": "user", "content": [picture(61, 50, 90), "and", picture(60, 80, 60), "then", picture(62), "differ?"]}]
VIDEO = [{"role": "user", "content": [clip(63, 5, 60, 40), "What happens?"]}]
TEXT = [{"role": "user", "content": "Is it red?"}]


class Adapted:
    def __init__(self, name, models, root):
        self.family = checkpoints.family(name)
        self.engine, self.reference = Engine(models[name]), Reference(models[name])
        model = models.memory[name]
        self.sampling = {"max_tokens": 12, "ignore_eos": True, "temperature": 0,
                         "logit_bias": self.family.no_media_tokens(),
                         "logprobs": model.config.get_text_config().vocab_size}
        for seed, (adapter, config) in enumerate(ADAPTERS.items()):
            folder = save_adapter(model, root / adapter, 900 + seed, **config)
            self.reference.load_adapter(adapter, folder)
            assert self.engine.load(adapter, folder)["warnings"] == []

    def conversations(self):
        return [TEXT, ONE, SEVERAL] + ([VIDEO] if self.family.has_video else [])

    def request(self, messages, *uses):
        return {"messages": messages, "sampling": self.sampling,
                "adapters": [{"name": use} if isinstance(use, str) else {"name": use[0], "scale": use[1]} for use in uses]}

    def expect_same(self, messages, *uses):
        request = self.request(messages, *uses)
        answer = self.engine.one(request)
        expect_same(self.reference, request, answer)
        # A random model may give the same tokens with two adapters, so probabilities are compared.
        return [round(token["logprob"], 4) for token in answer["choices"][0]["tokens"]]

    def encoded(self):
        wait_until_idle(self.engine)
        stats = self.engine.stats()
        return stats["visual_queries"] - stats["visual_hits"]


@pytest.fixture(scope="module", params=MODELS)
def adapted(request, models, tmp_path_factory):
    made = Adapted(request.param, models, tmp_path_factory.mktemp("visual"))
    yield made
    made.engine.close()


@pytest.mark.parametrize("adapter", [None, *ADAPTERS])
def test_adapter_on_each_part_equals_peft(adapted, adapter):
    for messages in adapted.conversations():
        adapted.expect_same(messages, *[adapter] if adapter else [])


def test_adapter_on_each_part_changes_the_answer(adapted):
    """Makes sure that the comparisons are meaningful."""
    answers = {tuple(adapted.expect_same(SEVERAL, *uses)) for uses in [[], *([adapter] for adapter in ADAPTERS)]}
    assert len(answers) == len(ADAPTERS) + 1
    # Without a picture, adapters on the tower and the projector have no effect.
    assert adapted.expect_same(TEXT, "tower") == adapted.expect_same(TEXT, "projector") == adapted.expect_same(TEXT)


def test_scales_and_sums_equal_reference(adapted):
    adapted.expect_same(ONE, ("tower", 0.5))
    adapted.expect_same(SEVERAL, ("all", -0.5), "projector")
    adapted.expect_same(ONE, ("language", 2), ("tower-rank-40", 0.25), "tower")
    assert adapted.expect_same(ONE, ("tower", 0)) == adapted.expect_same(ONE)


def test_mixed_batch_equals_each_alone(adapted):
    """Three parts and the base model in the same steps: pictures are encoded together with different
    adapters."""
    uses = [[], ["language"], ["projector"], ["tower"], ["all"], [("tower", 0.5)], ["tower", "projector"]]
    conversations = adapted.conversations()
    requests = [adapted.request(conversations[i % len(conversations)], *use) for i, use in enumerate(uses * 3)]
    for request, answer in zip(requests, adapted.engine.batch(requests)):
        expect_same(adapted.reference, request, answer)


def test_equal_visual_embeddings_are_shared(models, tmp_path):
    name = "llava-default"
    made = Adapted(name, models, tmp_path)
    with made.engine:
        fresh = [{"role": "user", "content": [picture(69, 70, 40), "?"]}]
        for use, new in [([], 1), (["language"], 0), (["tower"], 1), (["all"], 1), (["language"], 0), (["tower"], 0),
                         ([("tower", 0.5)], 1), ([("tower", 0)], 0), (["tower", "language"], 0), (["tower", "all"], 1)]:
            before = made.encoded()
            # The text differs each time, so that the KV cache cannot replace the embeddings.
            request = made.request([{"role": "system", "content": str(use)}, *fresh], *use)
            expect_same(made.reference, request, made.engine.one(request))
            assert made.encoded() - before == new, use
