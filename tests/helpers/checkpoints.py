"""Tiny random checkpoints and adapters of odd sizes, written by transformers and PEFT themselves."""

import copy
import json
import warnings

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import families
import qwen1_reference
from releases import NEWEST

ALL_LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
MROPE = {8: [1, 1, 2], 16: [2, 3, 3], 24: [4, 4, 4], 32: [4, 6, 6]}  # by head size


def special_id(name):
    return families.Qwen.tokenizer().token_to_id(f"<|{name}|>")


def tokenizer():
    return families.Qwen.tokenizer()


def vocab_size():
    """The Qwen models' vocabulary size: larger than the tokenizer's, because Qwen2 pads it."""
    return tokenizer().get_vocab_size() + 9


def decoder(family, hidden, heads, kv_heads, layers, intermediate, tied):
    """Fields shared by all decoder configurations."""
    return dict(vocab_size=family.tokenizer().get_vocab_size() + 9, hidden_size=hidden, num_attention_heads=heads,
                num_key_value_heads=kv_heads, num_hidden_layers=layers, intermediate_size=intermediate,
                tie_word_embeddings=tied, max_position_embeddings=2048, rope_theta=10000.0,
                bos_token_id=None, eos_token_id=family.special_id(family.eos))


def qwen2(*sizes, **windows):
    return transformers.Qwen2Config(**decoder(families.QWEN2, *sizes), **windows or {"use_sliding_window": False})


def qwen3(*sizes, **more):
    return transformers.Qwen3Config(**decoder(families.QWEN3, *sizes), **more)


def qwen3_moe(sizes, **more):
    """more: the mixture's fields, and others."""
    return transformers.Qwen3MoeConfig(**decoder(families.QWEN3_MOE, *sizes) | {"use_sliding_window": False} | more)


def mistral(*sizes, **more):
    return transformers.MistralConfig(**decoder(families.MISTRAL, *sizes), **more)


def llama(family, *sizes, **more):
    return transformers.LlamaConfig(**decoder(family, *sizes), **more)


def qwen_vl(family, config_class, sizes, patch, merge, vision):
    hidden, heads, tied = sizes[0], sizes[1], sizes[-1]
    text = decoder(family, *sizes) | {"rope_scaling": {"type": "mrope", "mrope_section": MROPE[hidden // heads]},
                                      "use_sliding_window": False}
    vision = vision | dict(patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2, in_channels=3)
    return config_class(
        text_config=text, vision_config=vision, tie_word_embeddings=tied, image_token_id=special_id("image_pad"),
        video_token_id=special_id("video_pad"), vision_start_token_id=special_id("vision_start"),
        vision_end_token_id=special_id("vision_end"))


def qwen2_vl(*args):
    *sizes, patch, merge, width, heads, depth = args
    vision = dict(depth=depth, embed_dim=width, num_heads=heads, hidden_size=sizes[0], mlp_ratio=3)
    return qwen_vl(families.QWEN2_VL, transformers.Qwen2VLConfig, sizes, patch, merge, vision)


def qwen2_5_vl(*args):
    *sizes, patch, merge, width, heads, depth, window, full = args
    vision = dict(depth=depth, hidden_size=width, num_heads=heads, out_hidden_size=sizes[0], intermediate_size=41,
                  window_size=window, fullatt_block_indexes=full, tokens_per_second=2)
    return qwen_vl(families.QWEN2_5_VL, transformers.Qwen2_5_VLConfig, sizes, patch, merge, vision)


def qwen3_vl(sizes, head_dim, sections, vision, patch, merge, config_class=transformers.Qwen3VLConfig, **more):
    """sections: of the interleaved axes."""
    hidden, tied = sizes[0], sizes[-1]
    text = decoder(families.QWEN3_VL, *sizes) | dict(
        head_dim=head_dim, rope_scaling={"rope_type": "default", "mrope_section": sections, "mrope_interleaved": True}) | more
    vision = vision | dict(patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2, in_channels=3, out_hidden_size=hidden)
    return config_class(
        text_config=text, vision_config=vision, tie_word_embeddings=tied, image_token_id=special_id("image_pad"),
        video_token_id=special_id("video_pad"), vision_start_token_id=special_id("vision_start"),
        vision_end_token_id=special_id("vision_end"))


def qwen3_vl_moe(*args, **more):
    return qwen3_vl(*args, config_class=transformers.Qwen3VLMoeConfig, **more)


def qwen3_5_text(family, *sizes, rope, config_class="Qwen3_5TextConfig", **more):
    """rope: parameters in addition to theta."""
    fields = decoder(family, *sizes)
    theta = fields.pop("rope_theta")
    return getattr(transformers, config_class)(**fields | dict(rope_parameters={"rope_type": "default", "rope_theta": theta} | rope) | more)


def qwen3_5(sizes, vision, patch, merge, rope, kind="Qwen3_5", **more):
    text = qwen3_5_text(families.QWEN35, *sizes, rope=rope, config_class=f"{kind}TextConfig", **more).to_dict()
    vision = vision | dict(patch_size=patch, spatial_merge_size=merge, temporal_patch_size=2, in_channels=3, out_hidden_size=sizes[0])
    return getattr(transformers, f"{kind}Config")(
        text_config=text, vision_config=vision, tie_word_embeddings=sizes[-1], image_token_id=special_id("image_pad"),
        video_token_id=special_id("video_pad"), vision_start_token_id=special_id("vision_start"),
        vision_end_token_id=special_id("vision_end"))


def llava(sizes, vision, **more):
    vision = dict(model_type="clip_vision_model", num_hidden_layers=3, num_attention_heads=2) | vision
    text = llama(families.LLAVA, *sizes, attention_bias=more.pop("attention_bias", False)).to_dict()
    return transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=families.LLAVA.special_id("<image>"), **more)


def pinpoints(side, *grids):
    """image_grid_pinpoints for grids of (rows, columns) tiles."""
    return [[rows * side, columns * side] for rows, columns in grids]


def llava_next(text, vision, *grids, **more):
    """text: the decoder's configuration."""
    vision = dict(model_type="clip_vision_model", num_hidden_layers=3, num_attention_heads=2) | vision
    return transformers.LlavaNextConfig(
        vision_config=vision, text_config=text.to_dict(), image_token_index=families.LLAVA_NEXT["llama"].special_id("<image>"),
        image_grid_pinpoints=pinpoints(vision["image_size"], *grids), **more)


def pixtral(config_class, sizes, vision, head_dim, **more):
    """Configures Pixtral and Mistral 3."""
    family = families.PIXTRAL
    text = transformers.MistralConfig(**decoder(family, *sizes), head_dim=head_dim, sliding_window=None).to_dict()
    vision = dict(model_type="pixtral", num_attention_heads=2, num_hidden_layers=2) | vision
    return config_class(vision_config=vision, text_config=text, image_token_index=family.special_id("[IMG]"),
                        tie_word_embeddings=sizes[-1], **more)


def gemma3_text(family, *sizes, **more):
    return transformers.Gemma3TextConfig(**decoder(family, *sizes) | {"bos_token_id": 2, "pad_token_id": 0} | more)


def gemma3(sizes, vision, tokens, **more):
    family = families.GEMMA3
    vision = dict(model_type="siglip_vision_model", num_attention_heads=2, num_hidden_layers=2, vision_use_head=False) | vision
    return transformers.Gemma3Config(
        vision_config=vision, text_config=gemma3_text(family, *sizes, **more).to_dict(), mm_tokens_per_image=tokens,
        image_token_index=family.special_id("<image_soft_token>"), boi_token_index=family.special_id("<start_of_image>"),
        eoi_token_index=family.special_id("<end_of_image>"), tie_word_embeddings=sizes[-1])


def qwen1(family, hidden, heads, layers, intermediate, visual=None, **more):
    if visual is not None:
        visual |= dict(layers=2, output_dim=hidden, image_start_id=family.special_id("<img>"))
    return qwen1_reference.QWenConfig(
        vocab_size=family.tokenizer().get_vocab_size() + 9, hidden_size=hidden, num_attention_heads=heads, kv_channels=hidden // heads,
        num_hidden_layers=layers, intermediate_size=intermediate, visual=visual, **dict(seq_length=2048) | more)


def llava_onevision(sizes, vision, *grids, **more):
    vision = dict(model_type="siglip_vision_model", num_attention_heads=2, num_hidden_layers=2, vision_use_head=False) | vision
    family = families.LLAVA_ONEVISION
    text = transformers.Qwen2Config(**decoder(family, *sizes), use_sliding_window=False).to_dict()
    return transformers.LlavaOnevisionConfig(
        vision_config=vision, text_config=text, image_token_index=family.special_id("<image>"), video_token_index=family.special_id("<video>"),
        image_grid_pinpoints=pinpoints(vision["image_size"], *grids), **more)


def idefics3(family, sizes, vision, merge, **more):
    config_class = {families.IDEFICS3: transformers.Idefics3Config, families.SMOLVLM: transformers.SmolVLMConfig}[family]
    text = llama(family, *sizes, **more).to_dict()
    return config_class(text_config=text, vision_config=dict(num_attention_heads=2) | vision, scale_factor=merge,
                        image_token_id=family.special_id("<image>"), tie_word_embeddings=sizes[-1])


def internvl(text, vision, **more):
    """text: the decoder's configuration."""
    vision = dict(num_hidden_layers=2, num_attention_heads=2) | vision
    return transformers.InternVLConfig(text_config=text.to_dict(), vision_config=vision, tie_word_embeddings=text.tie_word_embeddings,
                                       image_token_id=families.INTERNVL.special_id("<IMG_CONTEXT>"), **more)


def internvl_text(kind, *sizes, **more):
    return getattr(transformers, f"{kind}Config")(**decoder(families.INTERNVL, *sizes) | more)


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
MODELS = {
    "text-grouped-tied": lambda: qwen2(48, 6, 2, 3, 37, True),
    "text-one-layer": lambda: qwen2(80, 5, 1, 1, 101, False),
    "llama3-scaled": lambda: llama(families.LLAMA3, 64, 4, 2, 3, 43, False, rope_scaling=LLAMA3_ROPE),
    "llama2-biased": lambda: llama(families.LLAMA2, 48, 3, 3, 2, 61, True, attention_bias=True, mlp_bias=True,
                                   rope_scaling={"rope_type": "linear", "factor": 2.5}),
    "vl-grouped-tied": lambda: qwen2_vl(48, 6, 2, 3, 37, True, 14, 2, 32, 2, 2),
    "vl-small-patch": lambda: qwen2_vl(80, 5, 1, 3, 53, False, 8, 2, 24, 3, 1),
    "vl-one-layer": lambda: qwen2_vl(64, 2, 2, 1, 61, False, 14, 2, 48, 4, 3),
    "vl-merge-three": lambda: qwen2_vl(72, 3, 1, 2, 45, True, 6, 3, 32, 4, 1),
    "vl25-windows": lambda: qwen2_5_vl(48, 6, 2, 3, 37, False, 7, 2, 32, 2, 3, 28, [1]),
    "vl25-odd-windows": lambda: qwen2_5_vl(80, 5, 1, 2, 53, True, 6, 2, 24, 3, 2, 38, []),
    "llava-default": lambda: llava((48, 6, 2, 3, 37, False), dict(hidden_size=32, intermediate_size=45, image_size=28, patch_size=7)),
    "llava-full-states": lambda: llava(
        (64, 4, 1, 2, 53, False), dict(hidden_size=24, intermediate_size=33, image_size=30, patch_size=8, hidden_act="gelu"),
        vision_feature_layer=[-1, 1, 0], vision_feature_select_strategy="full", multimodal_projector_bias=False,
        projector_hidden_act="gelu_pytorch_tanh", attention_bias=True),
}

# Windows shorter than one block of keys, shorter than two, and only in some layers; head sizes other than hidden /
# heads.
NEWER = {
    "qwen3-windows": lambda: qwen3(48, 6, 2, 3, 37, True, head_dim=12, use_sliding_window=True, sliding_window=11, max_window_layers=1),
    "qwen3-biased": lambda: qwen3(40, 4, 4, 2, 53, False, head_dim=16, attention_bias=True),
    "mistral-windows": lambda: mistral(48, 6, 2, 2, 37, False, head_dim=16, sliding_window=24),
    "mistral-full": lambda: mistral(64, 4, 1, 2, 43, True, sliding_window=None),
    "text-windows": lambda: qwen2(48, 6, 2, 3, 37, False, use_sliding_window=True, sliding_window=32,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
}
# Deepstack embeddings for two of three layers, and for more layers than exist, from blocks other than the first; sections one of which
# is cut off.
NEWER |= {
    "vl3-grouped-tied": lambda: qwen3_vl((48, 6, 2, 3, 37, True), 12, [2, 2, 2], dict(
        depth=4, hidden_size=32, num_heads=2, intermediate_size=45, num_position_embeddings=49, deepstack_visual_indexes=[0, 2]), 8, 2),
    "vl3-deeper-tower": lambda: qwen3_vl((40, 4, 4, 2, 53, False), 16, [2, 3, 3], dict(
        depth=4, hidden_size=24, num_heads=3, intermediate_size=33, num_position_embeddings=16, deepstack_visual_indexes=[1, 2, 3]), 6, 3,
        attention_bias=True),
}
# More positions than a tile has patches, and fewer; a tile that ends inside a patch; one token per tile.
NEWER |= {
    "smolvlm-tied": lambda: idefics3(families.SMOLVLM, (48, 6, 2, 3, 37, True), dict(
        hidden_size=32, intermediate_size=45, num_hidden_layers=2, image_size=48, patch_size=8), 2),
    "idefics3-text-tiles": lambda: idefics3(families.IDEFICS3, (40, 4, 4, 2, 53, False), dict(
        hidden_size=24, intermediate_size=33, num_hidden_layers=3, image_size=22, patch_size=7, hidden_act="gelu", layer_norm_eps=1e-5), 4,
        rope_scaling=LLAMA3_ROPE),
}
# The video placeholder outside the vocabulary, as published; norms of heads; interpolated positions; a final norm.
NEWER |= {
    "internvl-tied": lambda: internvl(
        internvl_text("Qwen2", 48, 6, 2, 3, 37, True, use_sliding_window=False, vocab_size=families.INTERNVL.special_id("<video>")),
        dict(hidden_size=32, intermediate_size=45, image_size=[28, 28], patch_size=[7, 7], attention_bias=True)),
    "internvl-qwen3": lambda: internvl(
        internvl_text("Qwen3", 40, 4, 4, 2, 53, False, head_dim=16),
        dict(hidden_size=24, intermediate_size=33, image_size=[30, 30], patch_size=[10, 10], norm_type="rms_norm", use_qk_norm=True,
             use_mean_pooling=False, hidden_act="gelu_pytorch_tanh"), projector_hidden_act="silu", downsample_ratio=0.25),
}
# Tiles that are wider than tall, and taller than wide; more tiles than have their patches kept; a tile that ends inside
# a patch.
NEWER |= {
    "next-mistral": lambda: llava_next(
        transformers.MistralConfig(**decoder(families.LLAVA_NEXT["mistral"], 48, 6, 2, 3, 37, False), head_dim=8, sliding_window=None),
        dict(hidden_size=32, intermediate_size=45, image_size=28, patch_size=7), (1, 2), (2, 1), (2, 2), (3, 1), (1, 3)),
    "onevision-tied": lambda: llava_onevision(
        (48, 6, 2, 3, 37, True), dict(hidden_size=32, intermediate_size=45, image_size=30, patch_size=7, vision_use_head=True),
        *((rows, columns) for rows in (1, 2, 3) for columns in (1, 2, 3)), vision_aspect_ratio="anyres_max_2"),
}

# A tower with two states side by side, and a rope base that affects the result; merged patches.
NEWER |= {
    "pixtral": lambda: pixtral(
        transformers.LlavaConfig, (48, 6, 2, 2, 37, False), dict(hidden_size=24, intermediate_size=33, image_size=72, patch_size=8,
                                                                  rope_theta=500.0), 8,
        vision_feature_layer=[-1, 1], vision_feature_select_strategy="full"),
    "mistral3-tied": lambda: pixtral(
        transformers.Mistral3Config, (40, 4, 4, 3, 53, True), dict(hidden_size=32, intermediate_size=45, image_size=84, patch_size=6,
                                                                    hidden_act="silu"), 16, spatial_merge_size=2),
}
# Layers with windows have their own rope; scores that are not scaled by the head size. No window is shorter than a picture, where
# the releases differ.
NEWER |= {
    "gemma3-text": lambda: gemma3_text(families.GEMMA3_TEXT, 48, 4, 2, 5, 37, True, head_dim=16, query_pre_attn_scalar=23, sliding_window=9,
                                       rope_local_base_freq=300.0, rope_scaling={"rope_type": "linear", "factor": 4.0}),
    "gemma3": lambda: gemma3((40, 4, 1, 4, 53, True), dict(hidden_size=32, intermediate_size=45, image_size=56, patch_size=7), 16,
                             head_dim=8, query_pre_attn_scalar=8, sliding_window=17, sliding_window_pattern=2),
    "gemma3-biased": lambda: gemma3((48, 6, 3, 3, 37, False), dict(hidden_size=24, intermediate_size=33, image_size=54, patch_size=9), 4,
                                    head_dim=16, query_pre_attn_scalar=40, sliding_window=32, sliding_window_pattern=3,
                                    attention_bias=True),
}
# Interpolated positions, and more tokens per picture than patches; as many positions as patches, and no projection.
NEWER |= {
    "qwen1-vl": lambda: qwen1(families.QWEN1_VL, 128, 4, 3, 75, dict(
        width=48, heads=3, mlp_ratio=2.7, image_size=30, patch_size=7, n_queries=25), seq_length=64),
    "qwen1-vl-square": lambda: qwen1(families.QWEN1_VL, 256, 4, 2, 90, dict(
        width=256, heads=4, mlp_ratio=1.2, image_size=64, patch_size=4, n_queries=9), no_bias=False),
    "qwen1-text": lambda: qwen1(families.QWEN1, 48, 3, 3, 74, seq_length=96, max_position_embeddings=2048),
}
# Key heads shared by several value heads; sizes that are not multiples of a vector; a layer with attention first, and only delta rules
# after it; half of each head rotated, with the usual sections. The larger epsilon limits how much the norm after a delta rule amplifies
# the rounding of outputs near zero, where releases differ by 2e-4 from themselves in float64.
if NEWEST:
    NEWER |= {
        "qwen35-tied": lambda: qwen3_5(
            (48, 6, 2, 4, 37, True), dict(depth=2, hidden_size=32, num_heads=2, intermediate_size=45, num_position_embeddings=49), 8, 2,
            {"partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
            linear_key_head_dim=12, linear_value_head_dim=20, rms_norm_eps=1e-3),
        "qwen35-first-full": lambda: qwen3_5(
            (40, 4, 4, 3, 53, False), dict(depth=3, hidden_size=24, num_heads=3, intermediate_size=33, num_position_embeddings=16), 6, 3,
            {"partial_rotary_factor": 0.5}, head_dim=16, linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=33,
            linear_value_head_dim=40, linear_conv_kernel_dim=3, attention_bias=True,
            layer_types=["full_attention", "linear_attention", "linear_attention"]),
        "qwen35-text": lambda: qwen3_5_text(
            families.QWEN35_TEXT, 64, 4, 1, 5, 43, False, rope={}, head_dim=24, linear_num_key_heads=1, linear_num_value_heads=2,
            linear_key_head_dim=16, linear_value_head_dim=16, full_attention_interval=2),
    }
# Weights of the chosen experts that add up to 1, and that do not; layers without a mixture, one of them because of the sparse step;
# windows; as many experts as are chosen.
NEWER |= {
    "qwen3-moe": lambda: qwen3_moe((48, 6, 2, 3, 37, False), head_dim=12, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=21,
                                   norm_topk_prob=True),
    "qwen3-moe-sparse": lambda: qwen3_moe((40, 4, 4, 4, 53, True), head_dim=16, num_experts=5, num_experts_per_tok=2,
                                          moe_intermediate_size=33, decoder_sparse_step=2, mlp_only_layers=[3], attention_bias=True,
                                          use_sliding_window=True, sliding_window=24),
    "vl3-moe": lambda: qwen3_vl_moe((48, 6, 2, 3, 37, False), 12, [2, 2, 2], dict(
        depth=3, hidden_size=32, num_heads=2, intermediate_size=45, num_position_embeddings=49, deepstack_visual_indexes=[0, 2]), 8, 2,
        num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20),
    "vl3-moe-sparse": lambda: qwen3_vl_moe((40, 4, 4, 2, 53, False), 16, [2, 3, 3], dict(
        depth=4, hidden_size=24, num_heads=3, intermediate_size=33, num_position_embeddings=16, deepstack_visual_indexes=[1, 2, 3]), 6, 3,
        attention_bias=True, num_experts=3, num_experts_per_tok=3, moe_intermediate_size=17, mlp_only_layers=[0]),
}
# A shared expert, of another width than the others.
if NEWEST:
    NEWER |= {
        "qwen35-moe": lambda: qwen3_5(
            (48, 6, 2, 4, 37, False), dict(depth=2, hidden_size=32, num_heads=2, intermediate_size=45, num_position_embeddings=49), 8, 2,
            {"partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1]}, kind="Qwen3_5Moe", head_dim=32, linear_num_key_heads=2,
            linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=20, rms_norm_eps=1e-3, num_experts=7,
            num_experts_per_tok=3, moe_intermediate_size=20, shared_expert_intermediate_size=29),
        "qwen35-moe-text": lambda: qwen3_5_text(
            families.QWEN35_TEXT, 64, 4, 1, 3, 43, True, rope={}, config_class="Qwen3_5MoeTextConfig", head_dim=24, linear_num_key_heads=1,
            linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, full_attention_interval=2, rms_norm_eps=1e-3,
            num_experts=4, num_experts_per_tok=1, moe_intermediate_size=23, shared_expert_intermediate_size=16),
    }
# One checkpoint of each text family in Llama's shape, by model_type: the suites of adapters, modes and training take all of them.
LLAMA_SHAPED = {"llama": "llama3-scaled", "qwen3": "qwen3-windows", "mistral": "mistral-windows"}
SEEDS = {name: seed for seed, name in enumerate([*sorted(MODELS), *NEWER])}
MODELS |= NEWER


def family(name):
    """The family of an entry in MODELS."""
    return families.family_of(MODELS[name]())


@torch.no_grad()
def randomise(model, seed):
    """Weights that make every part matter: products preserve the magnitude of their inputs, and norms and biases are not just
    ones and zeros."""
    generator = torch.Generator().manual_seed(seed)
    around_zero = model.config.get_text_config().model_type in ("gemma3_text", "qwen3_5_text", "qwen3_5_moe_text")  # their norm weights are centred on zero
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() > 1:
            table = any(part in name for part in ("embed_tokens", "wte", "pos_embed", "position_embeddings", "positional_embedding",
                                                  "cls_token", ".query"))
            fan_in = 1 if table else parameter[0].numel()
            if "experts." in name and parameter.dim() == 3:  # the inputs are the last axis since release 5
                fan_in = parameter.shape[-1 if NEWEST else 1]
            parameter.copy_(noise / fan_in**0.5)
        elif name.endswith("bias"):
            parameter.copy_(0.3 * noise)
        else:
            ones = not around_zero or "vision" in name or "visual" in name or "linear_attn.norm" in name
            parameter.copy_((1 if ones else 0) + 0.3 * noise)
    if model.config.get_text_config().tie_word_embeddings:
        model.get_input_embeddings().weight.mul_(model.get_input_embeddings().weight.shape[1] ** -0.5 * 2)
    model.tie_weights()
    return model.eval()


def make_model(name):
    config = MODELS[name]()
    return randomise(families.family_of(config).kind(config), SEEDS[name])


def save_model(model, folder, **kwargs):
    kind = families.family_of(model.config)
    model.generation_config.eos_token_id = kind.special_id(kind.eos)
    model.save_pretrained(folder, **kwargs)
    kind.save(model, folder)
    return folder


@torch.no_grad()
def save_adapter(base, folder, seed, targets=None, rank=8, alpha=None, **config):
    """An adapter of `base` whose update of each linear is half as large as the weights. Biases saved by PEFT are
    trained only in the decoder, and new rows and matrices are as large as the old ones."""
    config = dict(r=rank, lora_alpha=2 * rank if alpha is None else alpha, target_modules=targets or ALL_LINEARS) | config
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(**config))
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, peft.tuners.lora.LoraLayer):
            on_tokens = "default" in layer.lora_embedding_A
            a, b = (layer.lora_embedding_A["default"], layer.lora_embedding_B["default"]) if on_tokens else (
                layer.lora_A["default"].weight, layer.lora_B["default"].weight)
            a.copy_(torch.randn(a.shape, generator=generator) / (1 if on_tokens else a.shape[1] ** 0.5))
            b.copy_(0.5 * torch.randn(b.shape, generator=generator) / b.shape[1] ** 0.5 / layer.scaling["default"])
            if not on_tokens and getattr(layer.lora_B["default"], "bias", None) is not None:  # BD-LoRA has none
                layer.lora_B["default"].bias.copy_(0.3 * torch.randn(b.shape[0], generator=generator) / layer.scaling["default"])
            if "default" in layer.lora_magnitude_vector:
                magnitude = layer.lora_magnitude_vector["default"].weight
                magnitude.mul_(1 + 0.3 * torch.randn(magnitude.shape, generator=generator))
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "modules_to_save" in name or "trainable_tokens_delta" in name:
            parameter.copy_(noise * (parameter.std() if "embed" in name or "lm_head" in name else 1))
        elif config.get("bias", "none") != "none" and name.endswith("bias") and "layers." in name and "visual" not in name:
            parameter.add_(0.3 * noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PEFT warns that it finds no base model
        model.save_pretrained(folder)
    return folder


def add_head(folder, hidden, labels, seed, bias, name="score", problem_type="single_label_classification",
             add_generation_prompt=False):
    """Adds a head to an adapter's products, stored as PEFT's modules_to_save, with its labels in the
    sidecar."""
    generator = torch.Generator().manual_seed(seed)
    tensors = load_file(folder / "adapter_model.safetensors")
    tensors[f"base_model.model.{name}.weight"] = torch.randn((len(labels), hidden), generator=generator)
    if bias:
        tensors[f"base_model.model.{name}.bias"] = torch.randn(len(labels), generator=generator)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["modules_to_save"] = [*(config.get("modules_to_save") or []), name]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    sidecar = folder / "valora.json"
    notes = json.loads(sidecar.read_text()) if sidecar.exists() else {"heads": []}
    notes["heads"].append({"name": name, "labels": labels, "problem_type": problem_type,
                           "add_generation_prompt": add_generation_prompt})
    sidecar.write_text(json.dumps(notes))
    return folder
