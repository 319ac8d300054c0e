"""Pixtral and Mistral 3 beyond the tests of all families: adapters along with the base model, tensor names, insufficient memory, and
folder settings."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

import families
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, generate
from reference import Reference, expect_same
from test_llava_next import TEXT, changed, expect_memory_changes_nothing, request_of

NAMES = ["pixtral", "mistral3-tied"]
ONE = [{"role": "user", "content": ["See ", picture(90, 131, 43), "what is it?"]}]
SEVERAL = [{"role": "user", "content": [picture(91, 33, 120), picture(92, 61, 60), "or", picture(93, 4, 3), "what changed?"]}]
TALL = [{"role": "user", "content": [picture(94, 9, 500), "a line"]}]
WIDE = [{"role": "user", "content": ["a line", picture(95, 700, 28)]}]


@pytest.mark.parametrize("name", NAMES)
def test_adapters_on_every_linear_equal_peft(models, name, tmp_path):
    model = models.memory[name]
    adapter = save_adapter(model, tmp_path / "adapter", 78, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    assert any("merging_layer" in key for key in load_file(adapter / "adapter_model.safetensors")) == (name == "mistral3-tied")
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    for mode in ("mixture", "merged"):
        with Engine(models[name], mode=mode) as engine:
            assert engine.load("a", adapter)["warnings"] == []
            for messages in (TEXT, ONE, SEVERAL, TALL, WIDE):
                requests = [request_of(model, messages), request_of(model, messages, "a")]
                for request, answer in zip(requests, engine.batch(requests)):
                    expect_same(reference, request, answer)


@pytest.mark.parametrize("name", NAMES)
def test_module_names_are_understood(models, references, tmp_path, name):
    """Names used by the newest releases; folders written by a release are compared elsewhere."""
    folder = shutil.copytree(models[name], tmp_path / "model")
    new = {"language_model.model.": "model.language_model.", "language_model.lm_head": "lm_head", "vision_tower.": "model.vision_tower.",
           "multi_modal_projector.": "model.multi_modal_projector."}
    tensors = load_file(folder / "model.safetensors")
    found = {key: next(old for old in new if key.startswith(old)) for key in tensors}
    save_file({new[old] + key.removeprefix(old): tensors[key] for key, old in found.items()}, folder / "model.safetensors", {"format": "pt"})
    with Engine(folder) as engine:
        request = request_of(models.memory[name], ONE)
        expect_same(references[name], request, engine.one(request))


@pytest.mark.parametrize("name", NAMES)
def test_chunks_preemptions_and_cached_prefixes_change_no_answer(models, references, name):
    """The rows of a picture end in text tokens: chunks begin and end anywhere between them."""
    expect_memory_changes_nothing(models.memory[name], models[name], references[name], [ONE, SEVERAL], chunk=29)


@pytest.mark.parametrize("name, files, why", [
    ("pixtral", {"config": {"vision_feature_select_strategy": "default"}}, "vision_feature_select_strategy"),
    ("mistral3-tied", {"config": {"vision_feature_layer": [-1, 1]}}, "vision_feature_layer"),
    ("mistral3-tied", {"processor_config": {"spatial_merge_size": 1}}, "spatial_merge_size"),
    ("pixtral", {"processor_config": {"patch_size": 14}}, "patch_size"),
    ("pixtral", {"processor_config": {"image_end_token": "\n"}}, "image_end_token")], ids=lambda value: str(value)[:40])
def test_unsupported_settings_are_refused(models, tmp_path, name, files, why):
    done = generate(changed(models[name], tmp_path / "model", **files), "--prompt", "x", check=False)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_foreign_tower_and_placeholder_in_text_are_refused(models, tmp_path):
    name, vision = "pixtral", json.loads((models["pixtral"] / "config.json").read_text())["vision_config"]
    done = generate(changed(models[name], tmp_path / "model", config={"vision_config": vision | {"head_dim": 16}}), "--prompt", "x",
                    check=False)
    assert done.returncode == 1 and "head_dim" in done.stderr
    with Engine(models[name]) as engine:
        marks = "".join(families.Pixtral.specials[1:])
        assert len(engine.one(request_of(models.memory[name], [{"role": "user", "content": marks}]))["choices"]) == 1
        with pytest.raises(EngineError, match="placeholder"):
            engine.one(request_of(models.memory[name], [{"role": "user", "content": "[IMG]"}]))
