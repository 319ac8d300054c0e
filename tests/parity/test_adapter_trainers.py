"""Folders as written by trainers, against PEFT in fp32: additional files, options, expressions and tensor names.

Based on the sources of TRL 1.16, axolotl 0.19, LLaMA-Factory 0.9.5, ms-swift 4.6 and unsloth 2026.10, none of which is installed
here.
"""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import families
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError
from reference import Reference, expect_same

NAME = "vl-grouped-tied"
TENSORS, PREFIX = "adapter_model.safetensors", "base_model.model."
REQUEST = {"messages": [{"role": "user", "content": [picture(60, 80, 60), "What is this?"]}]}
TEXT = {"messages": [{"role": "user", "content": "Is it red?"}]}
# Files of transformers' Trainer, which all of them use: in the output folder and in checkpoint-N.
TRAINING = ["README.md", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"]
AXOLOTL = r"model.language_model.layers.[\d]+.(mlp|cross_attn|self_attn).(up|down|gate|q|k|v|o)_proj"
SWIFT = r"^(model\.language_model(?=\.).*\.(o_proj|q_proj|v_proj|up_proj|k_proj|down_proj|gate_proj))$"
UNSLOTH = (r"(?:.*?(?:vision|image|visual|patch|language|text).*?(?:self_attn|attention|attn|mixer|mlp|feed_forward|ffn|dense|mixer)"
           r".*?\.(?:qkv|proj|fc1|fc2|q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj))|(?:\bmodel\.layers\.[\d]{1,}"
           r"(?!.*\.experts\.\d)\..*?(?:self_attn|attention|attn|mixer|mlp|feed_forward|ffn|dense|mixer).*?"
           r"\.(?:(?:qkv|proj|fc1|fc2|q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)))")


class Case:
    def __init__(self, models):
        self.folder, self.model, self.loaded = models[NAME], models.memory[NAME], 0
        self.engine, self.reference = Engine(self.folder), Reference(self.folder)
        self.sampling = {"max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": self.model.config.get_text_config().vocab_size,
                         "logit_bias": self.reference.family.no_media_tokens()}

    def expect_same(self, folder, plain=None):
        """Answers with a folder must equal PEFT's with it, or with another one that has the same
        values. Returns the warnings."""
        self.loaded += 1
        adapter = f"a{self.loaded}"
        warnings = self.engine.load(adapter, folder)["warnings"]
        self.reference.load_adapter(adapter, plain or folder)
        for asked in (REQUEST, TEXT):
            request = asked | {"adapters": [{"name": adapter}], "sampling": self.sampling}
            expect_same(self.reference, request, self.engine.one(request))
        base, adapted = (self.reference.next_token_logits(each, [0])[1] for each in (TEXT, request))
        assert (base - adapted).abs().max() > 0.05
        return warnings


@pytest.fixture(scope="module")
def case(models):
    made = Case(models)
    yield made
    made.engine.close()


@pytest.fixture(scope="module")
def plain(case, tmp_path_factory):
    return save_adapter(case.model, tmp_path_factory.mktemp("plain") / "adapter", 60, rank=4)


def output_folder(case, out, seed, files=(), config=(), **adapter):
    """A trainer's output: the adapter, the tokenizer and its files, and the same in checkpoint-2."""
    save_adapter(case.model, out, seed, task_type="CAUSAL_LM", **adapter)
    families.family_of(case.model.config).tokenizer().save(str(out / "tokenizer.json"))
    for name in [*TRAINING, "tokenizer_config.json", "chat_template.jinja", "preprocessor_config.json", *files]:
        (out / name).write_text("{}" if name.endswith(".json") else "x")
    written = json.loads((out / "adapter_config.json").read_text())
    (out / "adapter_config.json").write_text(json.dumps(written | dict(config)))
    shutil.copytree(out, out / "checkpoint-2")
    return out


def renamed(folder, out, rename, **config):
    shutil.copytree(folder, out)
    save_file({rename(key): value for key, value in load_file(folder / TENSORS).items()}, out / TENSORS)
    written = json.loads((out / "adapter_config.json").read_text())
    (out / "adapter_config.json").write_text(json.dumps(written | config))
    return out


def linears_of_the_decoder(case):
    """LLaMA-Factory lists the full names of all modules if the tower is frozen."""
    return [name for name, module in case.model.named_modules() if isinstance(module, torch.nn.Linear) and "language_model" in name]


TRAINERS = {
    "trl": lambda case: dict(rank=3, targets="all-linear"),
    "axolotl": lambda case: dict(rank=4, targets=AXOLOTL, files=["config.json", "generation_config.json", "debug.log"]),
    "llamafactory": lambda case: dict(rank=2, targets=linears_of_the_decoder(case), use_rslora=True,
                                      files=["all_results.json", "train_results.json", "trainer_log.jsonl", "training_loss.png"]),
    "ms-swift": lambda case: dict(rank=5, targets=SWIFT, modules_to_save=[],
                                  files=["additional_config.json", "args.json", "configuration.json", "logging.jsonl"]),
    "ms-swift 2": lambda case: dict(rank=5, targets=SWIFT, config={"lora_dtype": None, "lorap_lr_ratio": None, "lorap_emb_lr": 1e-06}),
    "unsloth": lambda case: dict(rank=4, targets=UNSLOTH, config={
        "unsloth_fixed": True, "auto_mapping": {"base_model_class": "Qwen2VLForConditionalGeneration", "unsloth_fixed": True,
                                                "parent_library": "transformers.models.qwen2_vl.modeling_qwen2_vl"}}),
}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_output_folder_of_a_trainer_is_served(case, tmp_path, trainer):
    folder = output_folder(case, tmp_path / "out", list(TRAINERS).index(trainer) + 61, **TRAINERS[trainer](case))
    assert case.expect_same(folder) == []
    assert case.expect_same(folder / "checkpoint-2", folder) == []
    (folder / "adapter_config.json").unlink()
    with pytest.raises(EngineError, match="has no adapter_config.json, but its folder checkpoint-2 has one"):
        case.engine.load("parent", folder)


WRAPPED = {
    "adapter": lambda key: key.replace(".lora_A.", ".lora_A.default.").replace(".lora_B.", ".lora_B.default."),
    "DDP": lambda key: "module." + key,
    "DeepSpeed around DDP": lambda key: "module.module." + key,
    "compiled outside": lambda key: "_orig_mod." + key,
    "compiled inside": lambda key: key.replace(PREFIX, PREFIX + "_orig_mod.", 1),
    "DDP of compiled": lambda key: "module._orig_mod." + key,
    "compiled DDP": lambda key: "_orig_mod.module." + key,
    "FSDP": lambda key: "_fsdp_wrapped_module." + key.replace(".self_attn.", "._fsdp_wrapped_module.self_attn."),
    "checkpointing": lambda key: key.replace(".self_attn.", "._checkpoint_wrapped_module.self_attn.").replace(
        ".mlp.", "._checkpoint_wrapped_module.mlp."),
    "all": lambda key: "module._fsdp_wrapped_module." + key.replace(
        ".self_attn.", "._fsdp_wrapped_module._checkpoint_wrapped_module.self_attn.").replace(".lora_B.", ".lora_B.default."),
}


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_names_of_wrapped_models_are_understood(case, plain, tmp_path, wrapper):
    """PEFT itself skips names that it does not find, and answers as the base model; here the adapter takes
    effect."""
    assert case.expect_same(renamed(plain, tmp_path / "out", WRAPPED[wrapper]), plain) == []


@pytest.mark.parametrize("key, part", [
    ("module_.base_model.model.x.weight", "does not begin with"), ("base_model.module.x.weight", "does not begin with"),
    (PREFIX + "_orig_mod.weight", "_orig_mod"), ("_orig_mod", "does not begin with"), (PREFIX + "modules_to_save.default.weight", "modules_to_save")])
def test_other_names_are_refused(case, plain, tmp_path, key, part):
    folder = renamed(plain, tmp_path / "out", lambda name: name)
    save_file(load_file(folder / TENSORS) | {key: torch.ones(3)}, folder / TENSORS)
    with pytest.raises(EngineError, match=part):
        case.engine.load("unknown", folder)


def test_tensor_under_two_names_is_refused(case, plain, tmp_path):
    tensors = load_file(plain / TENSORS)
    folder = renamed(plain, tmp_path / "out", lambda name: name)
    key = next(key for key in tensors if "lora_A" in key)
    save_file(tensors | {"module." + key: tensors[key] + 1}, folder / TENSORS)
    with pytest.raises(EngineError, match="is the second lora_A of"):
        case.engine.load("twice", folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_dtype_changes_no_answer(case, plain, tmp_path, dtype):
    folder = renamed(plain, tmp_path / "out", lambda key: key)
    save_file({key: value.to(dtype) for key, value in load_file(plain / TENSORS).items()}, folder / TENSORS)
    assert case.expect_same(folder) == []


def test_whole_modules_under_the_adapters_name_are_read(case, tmp_path):
    """Named as in a state dict gathered from FSDP shards."""
    folder = save_adapter(case.model, tmp_path / "saved", 75, rank=3, targets=["q_proj"], modules_to_save=["embed_tokens"],
                          ensure_weight_tying=True)
    gathered = renamed(folder, tmp_path / "gathered", lambda key: key.replace("embed_tokens.", "embed_tokens.modules_to_save.default."))
    assert any("modules_to_save.default" in key for key in load_file(gathered / TENSORS))
    assert case.expect_same(gathered, folder) == []


@pytest.mark.parametrize("name", ["v_head.summary", "v_head.modules_to_save.default.summary"])
def test_value_head_of_a_reward_model_equals_reference(case, plain, tmp_path, name):
    """ms-swift trains TRL's ValueHead as one of modules_to_save."""
    width = case.model.config.get_text_config().hidden_size
    generator = torch.Generator().manual_seed(76)
    weight, bias = torch.randn((1, width), generator=generator), torch.randn(1, generator=generator)
    folder = renamed(plain, tmp_path / "out", lambda key: key, modules_to_save=["v_head"])
    save_file(load_file(plain / TENSORS) | {f"{PREFIX}{name}.weight": weight, f"{PREFIX}{name}.bias": bias}, folder / TENSORS)
    adapter = f"reward {len(name)}"
    assert case.engine.load(adapter, folder)["warnings"] == []
    case.reference.load_adapter(adapter, plain)
    request = REQUEST | {"adapters": [{"name": adapter}], "task": "classify", "add_generation_prompt": False}
    _, _, hidden = case.reference.forward(request)
    result = case.engine.one(request)["classification"]
    assert result["head"] == "v_head" and result["logits"] == pytest.approx((hidden[-1] @ weight.T + bias).tolist(), abs=1e-4)


def test_unread_value_head_file_is_reported(case, plain, tmp_path):
    """As written by LLaMA-Factory, including for PPO policies, whose answers come from the adapter
    alone."""
    folder = renamed(plain, tmp_path / "out", lambda key: key)
    save_file({"v_head.summary.weight": torch.ones(1, 3)}, folder / "value_head.safetensors")
    warnings = case.expect_same(folder, plain)
    assert len(warnings) == 1 and "value_head.safetensors is not read" in warnings[0]


@pytest.mark.parametrize("config, part", [({"init_lora_weights": "pissa_niter_16"}, "pissa"), ({"init_lora_weights": "loftq"}, "loftq"),
                                          ({"peft_type": "ADALORA"}, "ADALORA"), ({"peft_type": "OFT"}, "OFT")])
def test_other_methods_of_trainers_are_refused(case, plain, tmp_path, config, part):
    folder = renamed(plain, tmp_path / "out", lambda key: key, **config)
    with pytest.raises(EngineError, match=part):
        case.engine.load("method", folder)


@pytest.mark.parametrize("left, part", [("adapter_model.safetensors.index.json", "in several files"), ("pytorch_model_fsdp_0", "accelerate merge-weights")])
def test_shards_are_refused(case, plain, tmp_path, left, part):
    folder = renamed(plain, tmp_path / "out", lambda key: key)
    (folder / TENSORS).rename(folder / left)
    with pytest.raises(EngineError, match=part):
        case.engine.load("shards", folder)
