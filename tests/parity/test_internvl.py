"""InternVL beyond the checkpoints of all families: folders with their own code, against the same model in transformers'
format; other decoders and layers."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import families
from checkpoints import internvl, internvl_text, randomise, save_adapter, save_model
from pictures import clip, film, picture
from programs import Engine, EngineError
from reference import Reference, expect_same
from releases import NEWEST, CanvasPixels

SYSTEM = "你是书生·万象，英文名是InternVL，是由上海人工智能实验室、清华大学及多家合作单位联合开发的多模态大语言模型。"
IMAGES = [{"role": "user", "content": ["Image-1: ", picture(80, 90, 41), "Image-2: ", picture(81, 33, 120), "what changed?"]}]
VIDEO = [{"role": "user", "content": ["See ", clip(82, 3, 60, 40), "Why?"]}]
TEXT = [{"role": "user", "content": "Is it red?"}]


class WithSystem(families.InternVL):
    """The conversation format internvl2_5."""

    def render(self, messages, add_generation_prompt=True):
        return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n" + super().render(messages, add_generation_prompt)


OLDER_NAMES = {
    "model.language_model.": "language_model.model.", "model.vision_tower.": "vision_model.", "cls_token": "class_embedding",
    "position_embeddings": "position_embedding", "patch_embeddings.projection": "patch_embedding", "encoder.layer.": "encoder.layers.",
    "lambda_": "ls", "layernorm_before": "norm1", "layernorm_after": "norm2", "attention.projection_layer": "attn.proj",
    ".attention.": ".attn.", "model.multi_modal_projector.layer_norm": "mlp1.0", "model.multi_modal_projector.linear_1": "mlp1.1",
    "model.multi_modal_projector.linear_2": "mlp1.3"}


def older_name(name):
    for newest, older in OLDER_NAMES.items():
        name = name.replace(newest, older)
    return "language_model." + name if name.startswith("lm_head") else name


def tower_qkv(tensors):
    """Removes each of the tower's q, k and v tensors; yields (name of the fused linear, q, k, v)."""
    for name in [name for name in tensors if ".attn.q_proj." in name]:
        yield name.replace("q_proj", "qkv"), *(tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj"))


def older_folder(model, folder, **changes):
    """The model with parts named as in the code that comes with older folders."""
    folder.mkdir()
    tensors = {older_name(name): tensor.contiguous() for name, tensor in model.state_dict().items()}
    for name, *parts in list(tower_qkv(tensors)):
        tensors[name] = torch.cat(parts)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    vision, text = model.config.vision_config.to_dict(), model.config.text_config.to_dict()
    vision |= {"model_type": "intern_vit_6b", "qkv_bias": vision["attention_bias"], "qk_normalization": vision["use_qk_norm"],
               "image_size": vision["image_size"][0], "patch_size": vision["patch_size"][0], "architectures": ["InternVisionModel"]}
    for key in ("attention_bias", "use_qk_norm", "use_mean_pooling"):
        del vision[key]
    config = {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "llm_config": text, "vision_config": vision,
              "auto_map": {"AutoModel": "modeling_internvl_chat.InternVLChatModel"}, "downsample_ratio": 0.5, "dynamic_image_size": True,
              "use_thumbnail": True, "force_image_size": 28, "min_dynamic_patch": 1, "max_dynamic_patch": 5, "pad2square": False,
              "ps_version": "v2", "select_layer": -1, "template": "internvl2_5", "torch_dtype": "float32", "use_backbone_lora": 0,
              "use_llm_lora": 0}
    (folder / "config.json").write_text(json.dumps(config | changes))
    families.INTERNVL.tokenizer().save(str(folder / "tokenizer.json"))
    # Not read: the code has its own picture settings.
    (folder / "preprocessor_config.json").write_text(json.dumps({"crop_size": 28, "image_processor_type": "CLIPImageProcessor"}))
    return folder


def older_adapter(adapter, folder):
    """Converts an adapter on the three linears to one on the fused linear with the same update of
    each."""
    tensors = {older_name(name): tensor for name, tensor in load_file(adapter / "adapter_model.safetensors").items()}
    for name, *parts in list(tower_qkv(tensors)):
        tensors[name] = torch.cat(parts) if "lora_A" in name else torch.block_diag(*parts)
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    config = json.loads((adapter / "adapter_config.json").read_text())
    targets = sorted({name.split(".lora_")[0].removeprefix("base_model.model.") for name in tensors})
    config |= {"target_modules": targets, "exclude_modules": None, "rank_pattern": {"qkv": 3 * config["r"]},
               "alpha_pattern": {"qkv": 3 * config["lora_alpha"]}}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


# ---- the same with a decoder of InternLM2, which is Llama with one linear of queries, keys and values ----

INTERNLM2_NAMES = {
    "self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
    "embed_tokens": "tok_embeddings", "language_model.lm_head": "language_model.output"}


def as_internlm2(tensors, config):
    """The tensors of the decoder, or of its adapter, under InternLM2's names: the queries of each key together with that key
    and its value."""
    heads, groups, dim = config.num_attention_heads, config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    for name in [name for name in tensors if ".self_attn.q_proj." in name]:
        parts = [tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
        fused = name.replace("self_attn.q_proj", "attention.wqkv")
        if "lora_A" in name:
            tensors[fused] = torch.cat(parts)
            continue
        rows = (torch.block_diag(*parts) if "lora_B" in name else torch.cat(parts)).split([heads * dim, groups * dim, groups * dim])
        tensors[fused] = torch.cat([part.reshape(groups, -1, *part.shape[1:]) for part in rows], 1).flatten(0, 1)
    for name in list(tensors):
        if "language_model" in name:
            new = name
            for llama, internlm2 in INTERNLM2_NAMES.items():
                new = new.replace(llama, internlm2)
            tensors[new] = tensors.pop(name).contiguous()
    return tensors


def rewritten(folder, file, config):
    tensors = as_internlm2(load_file(folder / file), config)
    save_file(tensors, folder / file, metadata={"format": "pt"})
    return sorted({name.split(".lora_")[0].removeprefix("base_model.model.") for name in tensors})


def internlm2_folder(model, folder):
    text = model.config.text_config
    older_folder(model, folder)
    rewritten(folder, "model.safetensors", text)
    config = json.loads((folder / "config.json").read_text())
    own = config["llm_config"]
    own |= {"model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": own.pop("attention_bias"), "attn_implementation": "eager"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def internlm2_adapter(adapter, folder, text):
    targets = rewritten(older_adapter(adapter, folder), "adapter_model.safetensors", text)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"] = targets
    for pattern in ("rank_pattern", "alpha_pattern"):
        config[pattern]["wqkv"] = config[pattern]["qkv"]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("bias", [True, False])
def test_internlm2_adapters_on_every_linear_equal_peft(older, tmp_path, bias):
    """In each mode; a decoder with grouped heads, against Llama with the same weights."""
    text = internvl_text("Llama", 48, 6, 2, 2, 37, False, attention_bias=bias)
    config = internvl(text, older.model.config.vision_config.to_dict())
    model = randomise(families.INTERNVL.kind(config), 81)
    reference = Reference(save_model(model, tmp_path / "newest"))
    reference.family, reference.processor = older.reference.family, older.reference.processor
    adapter = save_adapter(model, tmp_path / "adapter", 78, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    folder, own = internlm2_folder(model, tmp_path / "model"), internlm2_adapter(adapter, tmp_path / "older", text)
    reference.load_adapter("a", adapter)
    for options in ({}, {"mode": "merged"}, {"mode": "mixture"}, {"mode": "mixture", "tensor_parallel_size": 2}):
        with Engine(folder, **options) as engine:
            assert engine.load("a", own)["warnings"] == []
            requests = [older.request(messages, *uses) for messages in (TEXT, IMAGES) for uses in ([], ["a"])]
            for request, answer in zip(requests, engine.batch(requests)):
                expect_same(reference, request, answer)
    with pytest.raises(EngineError, match="the 2 heads of keys and values .* of one linear with their queries, do not divide"):
        Engine(folder, tensor_parallel_size=6)


class Older:
    """A model in both formats."""

    def __init__(self, root):
        text = internvl_text("Qwen3", 48, 4, 2, 2, 37, False, head_dim=16)
        config = internvl(text, dict(hidden_size=32, intermediate_size=45, num_hidden_layers=3, image_size=[28, 28],
                                     patch_size=[7, 7], norm_type="rms_norm", use_qk_norm=True, attention_bias=True))
        self.model, self.root = randomise(families.INTERNVL.kind(config), 77), root
        self.newest = save_model(self.model, root / "newest")
        self.reference = Reference(self.newest)
        self.reference.family = WithSystem()
        pixels = CanvasPixels(size={"height": 28, "width": 28}, max_patches=5, image_mean=[0.485, 0.456, 0.406],
                              image_std=[0.229, 0.224, 0.225])
        self.reference.processor = families.INTERNVL.processor_with(pixels, config)

    def request(self, messages, *adapters):
        return {"messages": messages, "adapters": [{"name": name} for name in adapters], "sampling": {
            "max_tokens": 8, "ignore_eos": True, "temperature": 0, "logit_bias": families.INTERNVL.no_media_tokens(),
            "logprobs": self.model.config.text_config.vocab_size}}


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    return Older(tmp_path_factory.mktemp("older"))


@pytest.mark.parametrize("mode", ["unmerged", "merged"])
def test_older_format_with_adapters_equals_reference(older, tmp_path, mode):
    adapter = save_adapter(older.model, tmp_path / "adapter", 78, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    older.reference.load_adapter(mode, adapter)
    with Engine(older_folder(older.model, tmp_path / "model"), mode=mode) as engine:
        assert engine.load(mode, older_adapter(adapter, tmp_path / "older"))["warnings"] == []
        for messages in (TEXT, IMAGES, VIDEO):
            for uses in ([], [mode]):
                request = older.request(messages, *uses)
                expect_same(older.reference, request, engine.one(request))


def test_older_format_with_transposed_tiles_equals_reference(older, tmp_path):
    model, own = older.reference.base.model, older.reference.base.model.pixel_shuffle
    model.pixel_shuffle = lambda features, scale_factor: own(features, scale_factor=scale_factor).transpose(1, 2)
    with Engine(older_folder(older.model, tmp_path / "model", ps_version="v1")) as engine:
        expect_same(older.reference, older.request(IMAGES), engine.one(older.request(IMAGES)))
    model.pixel_shuffle = own


def test_older_format_needs_a_template_and_passes_it_strings(older, tmp_path):
    folder = older_folder(older.model, tmp_path / "model", template="phi3-chat")
    with pytest.raises(EngineError, match="phi3-chat"):
        Engine(folder)
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}")
    reference = older.reference
    reference.family = families.INTERNVL
    with Engine(folder) as engine:
        for messages in (IMAGES, VIDEO):
            expect_same(reference, older.request(messages), engine.one(older.request(messages)))
    reference.family = WithSystem()


@pytest.mark.parametrize("layer", [pytest.param(-2, marks=pytest.mark.skipif(not NEWEST, reason="transformers 4.57 fails at it")), -1])
def test_llama_decoder_and_earlier_vision_layer_equal_reference(older, tmp_path, layer):
    text = internvl_text("Llama", 40, 4, 2, 2, 37, True)
    config = internvl(text, dict(hidden_size=24, intermediate_size=33, num_hidden_layers=3, image_size=[28, 28], patch_size=[7, 7],
                                 use_absolute_position_embeddings=False), vision_feature_layer=layer)
    folder = save_model(randomise(families.INTERNVL.kind(config), 79), tmp_path / "model")
    with Engine(folder) as engine:
        request = older.request(IMAGES)
        expect_same(Reference(folder), request, engine.one(request))


def test_frames_of_a_video_file_follow_folder_and_request(models, references, tmp_path):
    """All frames are taken, unless the folder or the request gives a number."""
    name = "internvl-tied"
    part = film(85, 9, 4.5, 47, 61)
    folder = shutil.copytree(models[name], tmp_path / "model")
    path = folder / ("processor_config.json" if NEWEST else "preprocessor_config.json")
    settings = json.loads(path.read_text())
    kept = dict(do_sample_frames=True, num_frames=3)
    if NEWEST:
        settings["video_processor"] |= kept
        path.write_text(json.dumps(settings))
    else:
        (folder / "video_preprocessor_config.json").write_text(json.dumps(
            {key: settings[key] for key in ("size", "image_mean", "image_std")} | kept))
    reference, ids = references[name], {}
    for which in (models[name], folder):
        with Engine(which) as engine:
            answer = engine.one({"messages": [{"role": "user", "content": [part]}], "sampling": {"max_tokens": 1}})
            ids[which] = answer["prompt_token_ids"]
    image = reference.family.special_id("<IMG_CONTEXT>")
    assert ids[models[name]].count(image) == 9 * 4 and ids[folder].count(image) == 3 * 4
