"""Rope types against transformers' own cached generation, in both spellings of config.json: prompts within and beyond the original positions."""

import json
import shutil

import pytest

from programs import Engine, EngineError, token_ids
from reference import Reference, expect_same
from wide import pairs

ORIGINAL = 48  # in positions
WORDS = "the image shows a red circle left of two small squares "
SHORT = {"prompt": "Once upon a time"}
LONG = {"prompt": WORDS * 8}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL}
ROPES = {
    "linear": {"type": "linear", "factor": 3.0},
    "yarn": YARN,
    "yarn-bounds": YARN | {"beta_fast": 8.0, "beta_slow": 2.0, "truncate": False},
    "yarn-attention": YARN | {"attention_factor": 1.3},
    "yarn-mscale": YARN | {"mscale": 0.8, "mscale_all_dim": 0.3},
}


def configured(models, folder, name, **fields):
    """A copy of a checkpoint with changed fields in its decoder configuration."""
    shutil.copytree(models[name], folder)
    config = json.loads((folder / "config.json").read_text())
    text = config.get("text_config", config)
    text.update(fields)
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return folder


def as_transformers_5(folder):
    """The same configuration as written by transformers 5."""
    config = json.loads((folder / "config.json").read_text())
    text = config.get("text_config", config)
    rope = text.pop("rope_scaling")
    rope = {"rope_type": rope.pop("type"), "rope_theta": text.pop("rope_theta")} | rope
    text["rope_parameters"] = rope
    text.pop("rope_scaling", None)
    (folder / "config.json").write_text(json.dumps(config))


def expect_generated(folder, reference, requests, count=24, **options):
    """Token by token the same as transformers' generate(), whose cached keys keep the frequencies of the pass they
    were computed in."""
    sampling = {"max_tokens": count, "ignore_eos": True, "temperature": 0, "logit_bias": reference.family.no_media_tokens()}
    with Engine(folder, **options) as engine:
        for request in requests:
            answer = engine.one(request | {"sampling": sampling})
            assert token_ids(answer) == reference.greedy(request | {"sampling": sampling}, count), request
    return True


@pytest.mark.parametrize("name, rope", pairs(["text-one-layer", "llama3-scaled", "vl-one-layer"], ROPES))
def test_static_rope_types_equal_reference(models, tmp_path, name, rope):
    scaling = dict(ROPES[rope])
    if name.startswith("vl"):
        text = json.loads((models[name] / "config.json").read_text())["text_config"]
        scaling["mrope_section"] = text["rope_scaling"]["mrope_section"]
    folder = configured(models, tmp_path / "model", name, rope_scaling=scaling)
    reference = Reference(folder)
    expect_generated(folder, reference, [SHORT, LONG])
    size = models.memory[name].config.get_text_config().vocab_size
    sampling = {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": size, "logit_bias": reference.family.no_media_tokens()}
    with Engine(folder) as engine:
        answer = engine.one(LONG | {"sampling": sampling})
        expect_same(reference, LONG | {"sampling": sampling}, answer)
    as_transformers_5(folder)
    with Engine(folder) as engine:
        assert token_ids(engine.one(LONG | {"sampling": sampling})) == token_ids(answer)
    plain = configured(models, tmp_path / "plain", name, rope_scaling=scaling | {"type": "default"})
    with pytest.raises(AssertionError), Engine(plain) as engine:  # the rope must matter
        expect_same(reference, LONG | {"sampling": sampling}, engine.one(LONG | {"sampling": sampling}))


def tokens_up_to(count):
    return {"tokens": [(11 * i * i + 3) % 250 for i in range(count)]}


def test_yarn_as_documented_by_qwen_serves_the_extended_context(models, tmp_path):
    """max_position_embeddings stays as in training; sequences up to factor times the original
    positions are served."""
    folder = configured(models, tmp_path / "model", "text-one-layer", rope_scaling=YARN, max_position_embeddings=ORIGINAL)
    expect_generated(folder, Reference(folder), [tokens_up_to(3 * ORIGINAL)])
    with Engine(folder) as engine, pytest.raises(EngineError, match=f"maximum context length is {4 * ORIGINAL}"):
        engine.one(tokens_up_to(4 * ORIGINAL + 1) | {"sampling": {"max_tokens": 1}})
