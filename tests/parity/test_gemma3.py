"""Gemma 3 beyond the tests of all families: adapters along with the base model, bidirectional attention in small steps, tensor
names, ropes, and folder settings."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, generate
from reference import Reference, expect_same
from releases import NEWEST
from test_llava_next import TEXT, changed, expect_memory_changes_nothing, request_of

NAMES = ["gemma3", "gemma3-biased"]
ONE = [{"role": "user", "content": ["See ", picture(90, 131, 43), "what is it?"]}]
SEVERAL = [{"role": "user", "content": [picture(91, 33, 120), picture(92, 61, 60), "or", picture(93, 4, 3), "what changed?"]}]


@pytest.mark.parametrize("name", NAMES)
def test_adapters_on_every_linear_equal_peft(models, name, tmp_path):
    model = models.memory[name]
    adapter = save_adapter(model, tmp_path / "adapter", 78, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    for mode in ("mixture", "merged"):
        with Engine(models[name], mode=mode) as engine:
            assert engine.load("a", adapter)["warnings"] == []
            for messages in (TEXT, ONE, SEVERAL):
                requests = [request_of(model, messages), request_of(model, messages, "a")]
                for request, answer in zip(requests, engine.batch(requests)):
                    expect_same(reference, request, answer)


def test_adapter_on_the_embeddings_equals_peft(models, tmp_path):
    """Both are scaled, as in PEFT."""
    model = models.memory["gemma3-text"]
    adapter = save_adapter(model, tmp_path / "adapter", 79, rank=4, targets=["embed_tokens", "q_proj", "down_proj"])
    reference = Reference(models["gemma3-text"])
    reference.load_adapter("a", adapter)
    with Engine(models["gemma3-text"]) as engine:
        engine.load("a", adapter)
        for request in ({"messages": TEXT, "adapters": [{"name": "a"}], "sampling": sampling(model)},
                        {"messages": TEXT, "sampling": sampling(model)}):
            expect_same(reference, request, engine.one(request))


def sampling(model):
    return {"max_tokens": 16, "ignore_eos": True, "temperature": 0, "logprobs": model.config.get_text_config().vocab_size}


@pytest.mark.parametrize("name", NAMES)
def test_chunks_preemptions_and_cached_prefixes_change_no_answer(models, references, name):
    """The tokens of a picture must run in one step; the cached part of a picture may end inside
    it."""
    expect_memory_changes_nothing(models.memory[name], models[name], references[name], [ONE, SEVERAL], chunk=90)


def test_cached_prefix_may_end_within_a_picture(models, references):
    """Blocks have 16 tokens, and the picture begins at every offset."""
    model, reference, within = models.memory["gemma3"], references["gemma3"], 0
    soft = reference.family.special_id("<image_soft_token>")
    with Engine(models["gemma3"]) as engine:
        for words in range(12):
            for end in ("?", "and more"):
                request = request_of(model, [{"role": "user", "content": ["a " * words + "See", picture(90, 131, 43), end]}])
                answer = engine.one(request)
                expect_same(reference, request, answer)
                ids, cached = answer["prompt_token_ids"], answer["usage"]["cached_tokens"]
                within += cached > 0 and ids[cached - 1] == ids[cached] == soft
    assert within > 3


@pytest.mark.skipif(not NEWEST, reason="4.57 shows a query all of its picture, also what is before its window")
def test_window_shorter_than_a_picture_equals_reference(models, tmp_path):
    text = json.loads((models["gemma3"] / "config.json").read_text())["text_config"]
    folder = changed(models["gemma3"], tmp_path / "model", config={"text_config": text | {"sliding_window": 7}})
    request = request_of(models.memory["gemma3"], SEVERAL)
    with Engine(folder) as engine:
        expect_same(Reference(folder), request, engine.one(request))


NEW = {"language_model.model.": "model.language_model.", "language_model.lm_head": "lm_head", "vision_tower.": "model.vision_tower.",
       "multi_modal_projector.": "model.multi_modal_projector."}


def test_module_names_are_understood(models, references, tmp_path):
    folder = shutil.copytree(models["gemma3"], tmp_path / "model")
    tensors = {}
    for key, tensor in load_file(folder / "model.safetensors").items():
        old = next((old for old in NEW if key.startswith(old)), "")
        tensors[NEW.get(old, "") + key.removeprefix(old).removeprefix("vision_model.")] = tensor
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with Engine(folder) as engine:
        request = request_of(models.memory["gemma3"], ONE)
        expect_same(references["gemma3"], request, engine.one(request))


@pytest.mark.parametrize("name, files, why", [
    ("gemma3", {"preprocessor_config": {"do_pan_and_scan": True}}, "do_pan_and_scan"),
    ("gemma3", {"preprocessor_config": {"size": {"height": 28, "width": 28}}}, "size"),
    ("gemma3", {"processor_config": {"image_seq_length": 9}}, "image_seq_length"),
    ("gemma3", {"config": {"mm_tokens_per_image": 9}}, "mm_tokens_per_image")], ids=lambda value: str(value)[:40])
def test_unsupported_settings_are_refused(models, tmp_path, name, files, why):
    if NEWEST and "preprocessor_config" in files:
        files = {"processor_config": {"image_processor": json.loads((models[name] / "processor_config.json").read_text())["image_processor"]
                                      | files["preprocessor_config"]}}
    done = generate(changed(models[name], tmp_path / "model", **files), "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


@pytest.mark.parametrize("key, value", [("final_logit_softcapping", 30.0), ("attn_logit_softcapping", 50.0), ("use_bidirectional_attention", True)])
def test_unsupported_decoder_features_are_refused(models, tmp_path, key, value):
    done = generate(changed(models["gemma3-text"], tmp_path / "model", config={key: value}), "--prompt", "x", check=False)
    assert done.returncode == 1 and key in done.stderr, done.stderr


def test_step_budget_smaller_than_a_picture_is_refused(models):
    done = generate(models["gemma3"], "--prompt", "x", "--max-num-batched-tokens", "10", check=False)
    assert done.returncode == 1 and "at least" in done.stderr and "picture" in done.stderr, done.stderr


def test_picture_placeholders_in_text_are_refused(models):
    with Engine(models["gemma3"]) as engine:
        assert len(engine.one(request_of(models.memory["gemma3"], [{"role": "user", "content": "a<end_of_image>"}]))["choices"]) == 1
        for mark in ("<start_of_image>", "<image_soft_token>"):
            with pytest.raises(EngineError, match="placeholder"):
                engine.one(request_of(models.memory["gemma3"], [{"role": "user", "content": mark}]))
