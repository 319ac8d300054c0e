"""Adapters in the layouts of trainers and of transformers and PEFT releases, against PEFT with the same tensors in
fp32."""

import copy
import json
import shutil
import subprocess
import sys

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from checkpoints import make_model, save_adapter, save_model
from pictures import picture
from programs import Engine, EngineError
from reference import Reference, expect_same
from serving import Server

VISUAL = ["llava-default", "vl-grouped-tied", "vl25-windows"]
ONE = [{"role": "user", "content": [picture(60, 80, 60), "What is this?"]}]
LANGUAGE, TOWER = "model.language_model.", {"llava-default": "model.vision_tower."}
TEXT = {"smolvlm-tied": "model.text_model."}  # instead of LANGUAGE
# Written by ms-swift 2 and 3 for Qwen2-VL, whose tower was named visual… at the time.
SWIFT = r"^(model)(?!.*(lm_head|output|emb|wte|shared)).*"


class Layouts:
    """The reference has an adapter named as in this release; the engine gets the same adapter in another layout."""

    def __init__(self, name, models):
        self.folder = models[name]
        self.engine, self.reference, self.model = Engine(models[name]), Reference(models[name]), models.memory[name]
        self.request = {"messages": ONE if self.reference.family.has_images else [{"role": "user", "content": "What is this?"}],
                        "sampling": {"max_tokens": 10, "ignore_eos": True, "temperature": 0,
                                     "logit_bias": self.reference.family.no_media_tokens(),
                                     "logprobs": self.model.config.get_text_config().vocab_size}}

    def expect_same(self, adapter, folder, plain):
        """Loads `folder`, whose answers must equal the reference's with `plain`. Returns the
        warnings."""
        loaded = self.engine.load(adapter, folder)
        self.reference.load_adapter(adapter, plain)
        request = self.request | {"adapters": [{"name": adapter}]}
        expect_same(self.reference, request, self.engine.one(request))
        base = self.reference.next_token_logits(self.request, [0])[1]
        assert not torch.allclose(self.reference.next_token_logits(request, [0])[1], base, atol=1e-2)
        return loaded["warnings"]


@pytest.fixture(scope="module")
def layouts(models):
    made = {}

    def get(name):
        if name not in made:
            made[name] = Layouts(name, models)
        return made[name]
    yield get
    for each in made.values():
        each.engine.close()


def relaid(folder, out, rename=lambda key: key, extra=(), **config):
    """A copy with renamed tensors, extra tensors and a changed configuration."""
    shutil.copytree(folder, out)
    tensors = {f"base_model.model.{rename(key.removeprefix('base_model.model.'))}": value
               for key, value in load_file(folder / "adapter_model.safetensors").items()}
    save_file(tensors | dict(extra), out / "adapter_model.safetensors")
    path = out / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return out


def language_model_alone(model):
    """The text model whose modules equal a vision-language model's decoder."""
    text = model.config.get_text_config()
    if model.config.model_type in ("llava", "smolvlm"):
        return transformers.LlamaForCausalLM(text)
    sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**{size: getattr(text, size) for size in sizes}))


@pytest.mark.parametrize("name", [*VISUAL, "smolvlm-tied"])
def test_adapter_of_the_language_model_alone_equals_peft(layouts, name, tmp_path):
    case = layouts(name)
    alone = save_adapter(language_model_alone(case.model), tmp_path / "alone", 40, rank=4)
    keys = load_file(alone / "adapter_model.safetensors")
    assert keys and all(key.startswith("base_model.model.model.layers.") for key in keys)
    plain = relaid(alone, tmp_path / "plain", lambda key: key.replace("model.", TEXT.get(name, LANGUAGE), 1))
    warnings = case.expect_same("alone", alone, plain)
    # The towers of LLaVA, SmolVLM and Qwen2.5-VL have linears with the same names, which the file correctly leaves
    # out.
    assert ["also targets" in warning for warning in warnings] == ([True] if name != "vl-grouped-tied" else [])


@pytest.mark.parametrize("name", VISUAL)
def test_module_list_that_reaches_the_tower_equals_peft(layouts, name, tmp_path):
    case = layouts(name)
    folder = save_adapter(case.model, tmp_path / "list", 41, rank=3,
                          targets=["q_proj", "v_proj", "qkv", "attn.proj", "up_proj", "fc1", "linear_1", "mlp.0"])
    keys = load_file(folder / "adapter_model.safetensors")
    assert any(".visual." in key or ".vision_tower." in key for key in keys) and any(".language_model." in key for key in keys)
    assert case.expect_same("list", folder, folder) == []


OTHER_NAMES = {
    "llava-default": {  # each part, by release
        "before 4.52": {"model.language_model.": "language_model.model.", "model.vision_tower.": "vision_tower.vision_model.",
                        "model.multi_modal_projector.": "multi_modal_projector."},
        "4.57": {"model.vision_tower.": "model.vision_tower.vision_model."},
        "5": {"model.vision_tower.": "model.vision_tower."}},
    "vl-grouped-tied": {"before 4.52": {"model.language_model.": "model.", "model.visual.": "visual."}},
    "vl25-windows": {"before 4.52": {"model.language_model.": "model.", "model.visual.": "visual."}},
}


@pytest.mark.parametrize("name, release", [(name, release) for name, found in OTHER_NAMES.items() for release in found])
def test_names_of_other_releases_are_understood(layouts, name, release, tmp_path):
    case = layouts(name)
    plain = save_adapter(case.model, tmp_path / "plain", 42, rank=4, targets="all-linear")
    prefixes = OTHER_NAMES[name][release]

    def rename(key):
        key = key.replace(".vision_tower.vision_model.", ".vision_tower.")
        old = next((old for old in prefixes if key.startswith(old)), "")
        return prefixes.get(old, "") + key.removeprefix(old)
    folder = relaid(plain, tmp_path / "renamed", rename)
    assert case.expect_same("names " + release.replace(".", "_"), folder, plain) == []


def test_expression_that_matches_more_in_another_release_is_resolved(layouts, tmp_path):
    case = layouts("vl-grouped-tied")
    plain = save_adapter(case.model, tmp_path / "plain", 43, rank=4)
    folder = relaid(plain, tmp_path / "swift", lambda key: key.replace(LANGUAGE, "model."), target_modules=SWIFT,
                    lora_dtype=None, lorap_lr_ratio=None, lorap_emb_lr=1e-6)
    assert case.expect_same("swift", folder, plain) == []


def test_file_without_its_last_layer_is_refused(layouts, tmp_path):
    case = layouts("vl-grouped-tied")
    plain = save_adapter(case.model, tmp_path / "plain", 44, rank=4)
    last = f"layers.{case.model.config.get_text_config().num_hidden_layers - 1}."
    tensors = {key: value for key, value in load_file(plain / "adapter_model.safetensors").items() if last not in key}
    save_file(tensors, plain / "adapter_model.safetensors")
    with pytest.raises(EngineError, match="no tensors for .*layers.2.* a part of it is missing"):
        case.engine.load("cut", plain)


def with_base_copies(model, adapter, out):
    """What PEFT saves with save_embedding_layers: the base model's embeddings and output layer in addition
    to the adapter."""
    peft.PeftModel.from_pretrained(copy.deepcopy(model), adapter).save_pretrained(out, save_embedding_layers=True)
    return out


def copies_in(folder):
    return [key for key in load_file(folder / "adapter_model.safetensors") if "lora_" not in key]


def changed_copy(folder, out, key):
    """A copy in which one value differs."""
    value = load_file(folder / "adapter_model.safetensors")[key].clone()
    value.view(-1)[-1] += 1
    return relaid(folder, out, extra={key: value})


@pytest.mark.parametrize("name", ["vl-grouped-tied", "text-one-layer", "llava-default"])
def test_base_copies_in_an_adapter_file_must_equal_the_base(layouts, name, tmp_path):
    case = layouts(name)
    plain = save_adapter(case.model, tmp_path / "plain", 45, rank=4)
    folder = with_base_copies(case.model, plain, tmp_path / "copies")
    assert {key.split(".")[-2] for key in copies_in(folder)} == {"embed_tokens", "lm_head"}
    warnings = case.expect_same("copies", folder, plain)
    assert warnings == case.engine.load("plain", plain)["warnings"]
    for number, key in enumerate(copies_in(folder)):
        changed = changed_copy(folder, tmp_path / f"changed{number}", key)
        if case.model.config.get_text_config().tie_word_embeddings:
            with pytest.raises(EngineError, match="different weights of .*embed_tokens and lm_head, which this model ties"):
                case.engine.load("changed", changed)
            continue
        case.engine.load(f"changed{number}", changed)
        reference = Reference(case.folder)
        reference.load_adapter(f"changed{number}", changed)
        request = case.request | {"adapters": [{"name": f"changed{number}"}]}
        expect_same(reference, request, case.engine.one(request))


def test_pickled_file_is_refused_with_the_conversion_command(layouts, tmp_path):
    case = layouts("text-one-layer")
    plain = save_adapter(case.model, tmp_path / "plain", 47, rank=4)
    pickled = relaid(plain, tmp_path / "pickled")
    torch.save(load_file(plain / "adapter_model.safetensors"), pickled / "adapter_model.bin")
    (pickled / "adapter_model.safetensors").unlink()
    with pytest.raises(EngineError, match="convert it in the folder: python3 -c") as error:
        case.engine.load("pickled", pickled)
    command = str(error.value).partition("in the folder: python3 ")[2]
    subprocess.run([f"{sys.executable} {command}"], cwd=pickled, shell=True, check=True)
    assert case.expect_same("pickled", pickled, plain) == []


def test_base_copies_are_checked_at_start_and_at_run_time(tmp_path):
    model = make_model("text-one-layer")
    plain = save_adapter(model, tmp_path / "plain", 46, rank=4)
    adapters = tmp_path / "adapters"
    with_base_copies(model, plain, adapters / "copies")
    relaid(adapters / "copies", adapters / "changed", extra={"base_model.model.model.norm.weight": model.model.norm.weight + 1})
    server = Server({"model": save_model(model, tmp_path / "model"), "plain": plain}, "--lora-dir", adapters,
                    "--allow-runtime-lora-updating")
    try:
        expected = server.chat("plain", "Is it red?")["choices"]
        assert server.chat("copies", "Is it red?")["choices"] == expected
        assert not any(card["id"] == "changed" for card in json.loads(server.request("GET", "/v1/models")[1])["data"])
        for name, status in {"copies": 200, "changed": 422}.items():
            got, text = server.request("POST", "/v1/load_lora_adapter", {"lora_name": f"{name} again", "lora_path": str(adapters / name)})
            assert got == status, text
        assert "model.norm (its whole weight: it differs from the base model's)" in text
        assert server.chat("copies again", "Is it red?")["choices"] == expected
    finally:
        server.stop()
