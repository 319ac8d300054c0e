"""The vision part (mmproj) of tiny models in a GGUF file, named and laid out as llama.cpp's converter does. The names are those of the
package gguf, except LLaVA's, which only an older script of llama.cpp converts."""

import json

import gguf
import numpy as np
import torch

import gguf_files

ARCHITECTURES = {"qwen2_vl": gguf.MODEL_ARCH.QWEN2VL, "qwen2_5_vl": gguf.MODEL_ARCH.QWEN2VL, "qwen3_vl": gguf.MODEL_ARCH.QWEN3VL,
                 "smolvlm": gguf.MODEL_ARCH.LLAMA, "idefics3": gguf.MODEL_ARCH.LLAMA, "gemma3": gguf.MODEL_ARCH.GEMMA3,
                 "llava": gguf.MODEL_ARCH.LLAMA, "mistral3": gguf.MODEL_ARCH.MISTRAL3, "internvl": gguf.MODEL_ARCH.QWEN2}
LANGUAGE = ("model.language_model.", "model.text_model.")  # prefixes in the model
PROJECTORS = {"qwen2_vl": "qwen2vl_merger", "qwen2_5_vl": "qwen2.5vl_merger", "qwen3_vl": "qwen3vl_merger", "smolvlm": "idefics3",
              "idefics3": "idefics3", "gemma3": "gemma3", "llava": "mlp", "mistral3": "pixtral", "internvl": "internvl"}
# What the tests' processors have, and the files have not: the published models' settings are taken.
PUBLISHED = {"smolvlm": {"resample": 1}, "idefics3": {"resample": 1}}


def kind_of(config):
    """As model_type; Pixtral's is LLaVA's."""
    return "pixtral" if config.vision_config.model_type == "pixtral" else config.model_type


def language_tensors(model):
    """The tensors of the language model under the names that it has alone."""
    for name, tensor in model.state_dict().items():
        for prefix in LANGUAGE:
            if name.startswith(prefix):
                yield "model." + name[len(prefix):], tensor
        if name == "lm_head.weight":
            yield name, tensor


def architecture_of(config):
    if kind_of(config) == "pixtral" and config.model_type == "llava":
        return gguf.MODEL_ARCH.LLAMA
    if config.model_type == "internvl":
        return {"qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3}[config.text_config.model_type]
    return ARCHITECTURES[config.model_type]


# ---- tensors ----


def joined(tensor, names):
    """The equal parts of a tensor along its first dimension."""
    rows = len(tensor) // len(names)
    return [(name, tensor[i * rows:(i + 1) * rows]) for i, name in enumerate(names)]


def qwen_pieces(name, tensor, config):
    name = name.removeprefix("model.")
    if ".qkv." in name and config.model_type != "qwen3_vl":
        return joined(tensor, [name.replace("qkv", part) for part in "qkv"])
    if "patch_embed.proj.weight" in name:
        return [("v.patch_embd.weight", tensor[:, :, 0]), ("v.patch_embd.weight.1", tensor[:, :, 1])]
    if "patch_embed.proj.bias" in name:
        return [("v.patch_embd.bias", tensor)]
    if name.startswith("visual.deepstack_merger_list."):
        _, _, number, part, end = name.split(".")
        block = config.vision_config.deepstack_visual_indexes[int(number)]
        return [(f"v.deepstack.{block}.{part.removeprefix('linear_')}.{end}", tensor)]
    if name.startswith("visual.merger.") and config.model_type == "qwen3_vl":
        part, end = name.split(".")[-2:]
        return [({"norm": "v.post_ln", "linear_fc1": "mm.0", "linear_fc2": "mm.2"}[part] + "." + end, tensor)]
    return [(name, tensor)]


def gemma_pieces(name, tensor, config):
    return [(name.removeprefix("model.").replace("_weight", ".weight"), tensor)]


def internvl_pieces(name, tensor, config):
    projector = {"layer_norm": "mlp1.0", "linear_1": "mlp1.1", "linear_2": "mlp1.3"}
    if name.startswith("model.multi_modal_projector."):
        part, end = name.split(".")[-2:]
        return [(f"{projector[part]}.{end}", tensor)]
    if "lambda_" in name or "position_embeddings" in name:
        return [(name + ".weight", tensor.squeeze(0) if "position" in name else tensor)]
    return [(name, tensor)]


def llava_pieces(name, tensor, config):
    """The names of convert_image_encoder_to_gguf.py, in which the linears of the MLP are exchanged. It leaves out what is behind the
    layer that is used."""
    name = name.removeprefix("model.").removeprefix("vision_tower.")
    if name.startswith("multi_modal_projector."):
        return [(name.replace("multi_modal_projector", "mm").replace("linear_1", "0").replace("linear_2", "2"), tensor)]
    used = max(feature_layers(config))
    if "post_layernorm" in name or any(f"layers.{i}." in name for i in range(used, config.vision_config.num_hidden_layers)):
        return []
    for old, new in (("vision_model", "v"), ("encoder.layers", "blk"), ("embeddings.", ""), ("_proj", ""), ("self_attn.", "attn_"),
                     ("layer_norm", "ln"), ("mlp.fc1", "ffn_down"), ("mlp.fc2", "ffn_up"), ("embedding", "embd"), ("layrnorm", "ln")):
        name = name.replace(old, new)
    return [(name, tensor)]


def plain_pieces(name, tensor, config):
    return [(name, tensor)]


def pixtral_pieces(name, tensor, config):
    return [(name.removeprefix("model."), tensor)]


PIECES = {"qwen2_vl": qwen_pieces, "qwen2_5_vl": qwen_pieces, "qwen3_vl": qwen_pieces, "smolvlm": plain_pieces, "idefics3": plain_pieces,
          "gemma3": gemma_pieces, "llava": llava_pieces, "pixtral": pixtral_pieces, "internvl": internvl_pieces}


def feature_layers(config):
    """The states that LLaVA uses, counted from the first."""
    layers, count = config.vision_feature_layer, config.vision_config.num_hidden_layers
    return [i if i >= 0 else count + 1 + i for i in (layers if isinstance(layers, list) else [layers])]


# ---- settings ----


def add_vision_settings(writer, config, processor):
    kind, vision = kind_of(config), config.vision_config
    first = config.model_type
    depth = vision.depth if "qwen" in first else max(feature_layers(config)) if kind == "llava" else vision.num_hidden_layers
    width = vision.embed_dim if first == "qwen2_vl" else vision.hidden_size
    side = vision.image_size if hasattr(vision, "image_size") else 560
    patch = vision.patch_size
    if first == "qwen3_vl":
        side = int(vision.num_position_embeddings**0.5 * patch)
    writer.add_type(gguf.GGUFType.MMPROJ)
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(PROJECTORS.get(kind, kind))
    writer.add_vision_projection_dim(config.text_config.hidden_size)
    writer.add_vision_image_size(side if isinstance(side, int) else side[0])
    writer.add_vision_patch_size(patch if isinstance(patch, int) else patch[0])
    writer.add_vision_embedding_length(width)
    writer.add_vision_feed_forward_length(0)  # as files of older converters
    writer.add_vision_block_count(depth)
    writer.add_vision_head_count(vision.num_heads if "qwen" in first else vision.num_attention_heads)
    writer.add_vision_image_mean(processor["image_mean"])
    writer.add_vision_image_std(processor["image_std"])
    writer.add_vision_attention_layernorm_eps(getattr(vision, "layer_norm_eps", 1e-5 if kind == "pixtral" else 1e-6))
    activation = getattr(vision, "hidden_act", "silu" if first == "qwen2_5_vl" else "quick_gelu")
    if activation != "quick_gelu":
        (writer.add_vision_use_silu if activation == "silu" else writer.add_vision_use_gelu)(True)
    SETTINGS[kind](writer, config, processor)


def qwen_settings(writer, config, processor):
    vision = config.vision_config
    writer.add_vision_spatial_merge_size(vision.spatial_merge_size)
    size = processor.get("size") or {}
    writer.add_vision_min_pixels(size.get("shortest_edge") or processor["min_pixels"])
    writer.add_vision_max_pixels(size.get("longest_edge") or processor["max_pixels"])
    if config.model_type == "qwen2_5_vl":
        full = vision.fullatt_block_indexes
        writer.add_vision_n_wa_pattern(full[0] + 1 if full else vision.depth + 1)
        writer.add_vision_window_size(vision.window_size)
    if config.model_type == "qwen3_vl":
        writer.add_vision_is_deepstack_layers([i in vision.deepstack_visual_indexes for i in range(vision.depth)])


def idefics_settings(writer, config, processor):
    writer.add_vision_projector_scale_factor(config.scale_factor)
    writer.add_vision_preproc_image_size(processor["size"]["longest_edge"])


def gemma_settings(writer, config, processor):
    side = config.vision_config.image_size // config.vision_config.patch_size
    writer.add_vision_projector_scale_factor(side // int(config.mm_tokens_per_image**0.5))


def llava_settings(writer, config, processor):
    writer.add_array("clip.vision.feature_layer", feature_layers(config))
    writer.add_bool("clip.has_llava_projector", True)
    writer.add_bool("clip.has_text_encoder", False)


def internvl_settings(writer, config, processor):
    writer.add_vision_projector_scale_factor(int(1 / config.downsample_ratio))
    writer.add_vision_preproc_min_tiles(processor["min_patches"])
    writer.add_vision_preproc_max_tiles(processor["max_patches"])


def pixtral_settings(writer, config, processor):
    if config.model_type == "mistral3":
        writer.add_vision_spatial_merge_size(config.spatial_merge_size)


SETTINGS = {"qwen2_vl": qwen_settings, "qwen2_5_vl": qwen_settings, "qwen3_vl": qwen_settings, "smolvlm": idefics_settings,
            "idefics3": idefics_settings, "gemma3": gemma_settings, "llava": llava_settings, "pixtral": pixtral_settings,
            "internvl": internvl_settings}


def stored_values(name, values, config):
    """What the converter stores of a tensor's values, and the way back."""
    kind = kind_of(config)
    if kind == "pixtral" and name.split(".")[-2] in ("attn_q", "attn_k"):
        heads = config.vision_config.num_attention_heads
        return gguf_files.interleaved(values, heads), lambda back: gguf_files.back_in_halves(back, heads)
    if name == "mm.soft_emb_norm.weight":
        return values + 1, lambda back: back - 1
    return values, lambda back: back


@torch.no_grad()
def write_mmproj(path, model, kind, processor, seed=0, row_end=None):
    """Writes the tower and the projector of a transformers model, and sets their weights to the values that the file decodes to.

    kind: the type of linears whose rows fit. processor: preprocessor_config.json's settings. row_end: Pixtral's token behind a row of
    patches, whose embedding the file holds for llama.cpp.
    """
    config, rng = model.config, np.random.default_rng(seed)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, 64)
    writer = gguf.GGUFWriter(str(path), "clip")
    add_vision_settings(writer, config, processor)
    for name, tensor in model.state_dict().items():
        if name.startswith(LANGUAGE) or name == "lm_head.weight":
            continue
        for own, piece in PIECES[kind_of(config)](name, tensor, config):
            stored_name = own if own.startswith(("v.", "mm.")) else names.get_name(own, try_suffixes=(".weight", ".bias"))
            assert stored_name, own
            values, back = stored_values(stored_name, piece.float().numpy(), config)
            position = "position_embd" in stored_name
            type_name = kind if values.ndim == 2 and not position else "F16" if values.ndim == 4 else "F32"
            if type_name not in gguf_files.FLOATS and values.shape[-1] % 32:
                type_name = "F16"  # as llama.cpp for rows that blocks do not divide
            raw, decoded = gguf_files.stored(np.ascontiguousarray(values), type_name, rng)
            writer.add_tensor(stored_name, raw, raw_dtype=None if type_name in gguf_files.FLOATS else gguf.GGMLQuantizationType[type_name])
            piece.copy_(torch.from_numpy(np.ascontiguousarray(back(decoded))))
    if row_end is not None:
        writer.add_tensor("v.token_embd.img_break", model.get_input_embeddings().weight[row_end].float().numpy())
    gguf_files.finish(writer)
    return path


def settings_of_folder(folder, config):
    """The settings of pictures in a folder, changed to those that the files can hold."""
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text()) | PUBLISHED.get(kind_of(config), {})
    if kind_of(config) == "pixtral":
        settings["size"] = {"longest_edge": config.vision_config.image_size}
    if kind_of(config) in ("smolvlm", "idefics3"):
        settings["max_image_size"] = {"longest_edge": config.vision_config.image_size}
    path.write_text(json.dumps(settings))
    return settings
