"""Every key of transformers' configuration classes is honoured, has no effect, or is refused by name.

A transformers release that adds a key fails here until somebody has examined what the key changes.
"""

import copy
import dataclasses
import itertools
import json
from inspect import signature

import pytest
import torch
import transformers
from transformers import modeling_rope_utils
from transformers.configuration_utils import PretrainedConfig

import checkpoints
import families
from programs import inspect
from releases import NEWEST

# Keys of all classes. READ_ELSEWHERE: read by the loader and by the code for prompts and answers; tested in
# test_generate_checkpoints.py.
READ_ELSEWHERE = {"architectures", "model_type", "dtype", "torch_dtype", "bos_token_id", "eos_token_id", "pad_token_id"}
WITHOUT_EFFECT = {
    # the outputs of a forward pass, how it is run, and memory
    "output_hidden_states", "output_attentions", "return_dict", "torchscript", "use_cache", "chunk_size_feed_forward", "use_bfloat16",
    "transformers_version", "pretraining_tp", "tf_legacy_loss", "_name_or_path",
    # training
    "attention_dropout", "initializer_range", "initializer_factor",
    # other model classes: classifiers, encoder-decoder models
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params", "is_encoder_decoder", "is_decoder",
    "cross_attention_hidden_size", "add_cross_attention", "tie_encoder_decoder", "decoder_start_token_id",
    # tokenizers
    "tokenizer_class", "prefix", "sep_token_id"}
REFUSED = {"per_layer_config": {"0": {"intermediate_size": 8}}, "pruned_heads": {"0": [1]}}

DECODER = {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_act",
           "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "rope_theta", "rope_scaling", "rope_parameters"}
WINDOWS = {"use_sliding_window", "sliding_window", "max_window_layers", "layer_types"}
QWEN_VISION = {"depth", "hidden_act", "hidden_size", "num_heads", "in_channels", "patch_size", "spatial_merge_size", "temporal_patch_size",
               "rope_parameters"}
PLACEHOLDERS = {"text_config", "vision_config", "image_token_id", "video_token_id"}
CLIP_VISION = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels", "image_size", "patch_size",
               "hidden_act", "layer_norm_eps"}
PIXTRAL_VISION = CLIP_VISION - {"layer_norm_eps"} | {"rope_theta", "rope_parameters"}
GEMMA3_TEXT = DECODER - {"hidden_act"} | {
    "hidden_activation", "head_dim", "attention_bias", "query_pre_attn_scalar", "sliding_window", "layer_types", "rope_local_base_freq",
    "final_logit_softcapping", "attn_logit_softcapping", "use_bidirectional_attention"}
LLAVA = {"text_config", "vision_config", "image_token_index", "projector_hidden_act", "vision_feature_select_strategy",
         "vision_feature_layer", "multimodal_projector_bias", "tie_word_embeddings"}
MIXTURE = {"decoder_sparse_step", "moe_intermediate_size", "num_experts_per_tok", "num_experts", "mlp_only_layers"}
MIXTURE_TRAINING = {"output_router_logits", "router_aux_loss_coef"}
# (checkpoint, part of its configuration, honoured keys, keys without effect in addition to those of all classes)
PARTS = [
    ("llama3-scaled", None, DECODER | {"attention_bias", "mlp_bias", "head_dim"}, set()),
    ("text-windows", None, DECODER | WINDOWS, set()),
    ("qwen3-windows", None, DECODER | WINDOWS | {"attention_bias", "head_dim"}, set()),
    ("mistral-windows", None, DECODER | {"sliding_window", "head_dim"}, set()),
    ("vl-grouped-tied", "text_config", DECODER | WINDOWS, set()),
    ("vl-grouped-tied", "vision_config", QWEN_VISION | {"embed_dim", "mlp_ratio"}, {"tie_word_embeddings"}),
    ("vl-grouped-tied", "", PLACEHOLDERS | {"tie_word_embeddings"}, {"vision_start_token_id", "vision_end_token_id"}),
    ("vl25-windows", "text_config", DECODER | WINDOWS, set()),
    ("vl25-windows", "vision_config", QWEN_VISION | {"intermediate_size", "out_hidden_size", "window_size", "fullatt_block_indexes",
                                                     "tokens_per_second"}, {"tie_word_embeddings"}),
    ("vl25-windows", "", PLACEHOLDERS | {"tie_word_embeddings"}, {"vision_start_token_id", "vision_end_token_id"}),
    ("vl3-grouped-tied", "text_config", DECODER | {"attention_bias", "head_dim"}, set()),
    ("vl3-grouped-tied", "vision_config", QWEN_VISION | {"intermediate_size", "out_hidden_size", "num_position_embeddings",
                                                         "deepstack_visual_indexes"}, {"tie_word_embeddings"}),
    ("vl3-grouped-tied", "", PLACEHOLDERS | {"tie_word_embeddings", "vision_start_token_id", "vision_end_token_id"}, set()),
    ("qwen3-moe", None, DECODER | MIXTURE | {"use_sliding_window", "sliding_window", "attention_bias", "norm_topk_prob"}, MIXTURE_TRAINING),
    ("vl3-moe", "text_config", DECODER | MIXTURE | {"attention_bias", "head_dim"}, MIXTURE_TRAINING | {"norm_topk_prob"}),
    ("vl3-moe", "vision_config", QWEN_VISION | {"intermediate_size", "out_hidden_size", "num_position_embeddings",
                                                "deepstack_visual_indexes"}, {"tie_word_embeddings"}),
    ("vl3-moe", "", PLACEHOLDERS | {"tie_word_embeddings", "vision_start_token_id", "vision_end_token_id"}, set()),
    ("llava-default", "text_config", DECODER | {"attention_bias", "mlp_bias", "head_dim"}, set()),
    ("llava-default", "vision_config", CLIP_VISION, {"projection_dim", "tie_word_embeddings"}),
    ("llava-default", "", LLAVA, {"image_seq_length"}),
    *((name, part, *keys) for name in ("smolvlm-tied", "idefics3-text-tiles") for part, *keys in [
        ("text_config", DECODER | {"attention_bias", "mlp_bias", "head_dim"}, set()),
        ("vision_config", CLIP_VISION, {"tie_word_embeddings"}),
        ("", {"text_config", "vision_config", "image_token_id", "scale_factor", "tie_word_embeddings"}, set())]),
    ("internvl-tied", "text_config", DECODER | WINDOWS, set()),
    ("internvl-qwen3", "text_config", DECODER | WINDOWS | {"attention_bias", "head_dim"}, set()),
    ("internvl-qwen3", "vision_config", {
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels", "image_size", "patch_size",
        "hidden_act", "layer_norm_eps", "norm_type", "use_qk_norm", "attention_bias", "use_absolute_position_embeddings", "use_mean_pooling"},
     {"tie_word_embeddings", "hidden_dropout_prob", "projection_dropout", "use_mask_token", "layer_scale_init_value"}),
    ("internvl-tied", "", {"text_config", "vision_config", "image_token_id", "downsample_ratio", "projector_hidden_act", "vision_feature_layer",
                           "vision_feature_select_strategy", "tie_word_embeddings"}, {"image_seq_length"}),
    ("next-mistral", "text_config", DECODER | {"sliding_window", "head_dim"}, set()),
    ("next-mistral", "vision_config", CLIP_VISION, {"projection_dim", "tie_word_embeddings"}),
    ("next-mistral", "", LLAVA | {"image_grid_pinpoints"}, {"image_seq_length"}),
    ("onevision-tied", "text_config", DECODER | WINDOWS, set()),
    ("onevision-tied", "vision_config", CLIP_VISION | {"vision_use_head"}, {"tie_word_embeddings"}),
    ("pixtral", "vision_config", PIXTRAL_VISION, {"tie_word_embeddings"}),
    ("pixtral", "text_config", DECODER | {"sliding_window", "head_dim"}, set()),
    ("pixtral", "", LLAVA, {"image_seq_length"}),
    ("mistral3-tied", "", LLAVA - {"vision_feature_select_strategy"} | {"spatial_merge_size"}, set()),
    ("gemma3", "text_config", GEMMA3_TEXT, set()),
    ("gemma3-text", None, GEMMA3_TEXT, set()),
    ("gemma3", "", {"text_config", "vision_config", "mm_tokens_per_image", "image_token_index", "tie_word_embeddings"},
     {"boi_token_index", "eoi_token_index"}),
    ("onevision-tied", "", LLAVA | {"video_token_index", "image_grid_pinpoints", "vision_aspect_ratio"}, set()),
]
if NEWEST:
    QWEN35_TEXT = DECODER | {"attention_bias", "head_dim", "layer_types", "linear_conv_kernel_dim", "linear_key_head_dim",
                             "linear_value_head_dim", "linear_num_key_heads", "linear_num_value_heads"}
    PARTS += [
        ("qwen35-tied", "text_config", QWEN35_TEXT, set()),
        ("qwen35-text", None, QWEN35_TEXT, set()),
        ("qwen35-moe", "text_config", QWEN35_TEXT - {"intermediate_size"} | {
            "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts_per_tok", "num_experts"}, MIXTURE_TRAINING),
        ("qwen35-tied", "vision_config", QWEN_VISION | {"intermediate_size", "out_hidden_size", "num_position_embeddings"},
         {"tie_word_embeddings"}),
        ("qwen35-tied", "", PLACEHOLDERS | {"tie_word_embeddings", "vision_start_token_id", "vision_end_token_id"}, set())]
IDS = [f"{name}-{part}" if part is not None else name for name, part, *_ in PARTS]
ROPE = {"rope_theta", "rope_type", "partial_rotary_factor", "factor", "original_max_position_embeddings", "attention_factor", "beta_fast",
        "beta_slow", "short_factor", "long_factor", "low_freq_factor", "high_freq_factor", "mscale", "mscale_all_dim", "truncate",
        "mrope_section"}


def keys_of(config_class):
    if dataclasses.is_dataclass(config_class):
        return {field.name for field in dataclasses.fields(config_class)}
    parameters = [signature(kind.__init__).parameters for kind in (config_class, PretrainedConfig)]
    return {name for one in parameters for name in one} - {"self", "kwargs"}


def part_of(config, part):
    return config[part] if part else config


def written(name, tmp_path):
    """config.json as written by this release."""
    config = checkpoints.MODELS[name]()
    config.architectures = [families.family_of(config).kind.__name__]
    config.save_pretrained(tmp_path)
    return json.loads((tmp_path / "config.json").read_text())


class Refusals:
    """The errors of `valora inspect` for changed configurations; None if one is accepted. There are no other
    files."""

    def __init__(self, config, part, folder):
        self.config, self.part, self.folder, self.numbers = config, part, folder, itertools.count()
        if "use_sliding_window" in part_of(config, part):
            part_of(config, part).update(use_sliding_window=True, sliding_window=16)
        if part == "":
            config["text_config"]["tie_word_embeddings"] = False  # otherwise the top-level key has no effect

    def of_each(self, changes):
        folders = []
        for one in changes:
            folders.append(self.folder / f"{next(self.numbers)}-{'-'.join(one)[:80]}")
            folders[-1].mkdir()
            config = copy.deepcopy(self.config)
            part_of(config, self.part).update(one)
            (folders[-1] / "config.json").write_text(json.dumps(config))
        reports = inspect(folders)
        assert len(reports) == len(folders)
        return [None if "modules" in report else " ".join(report["problems"]) for report in reports]


@pytest.mark.parametrize("name, part, honoured, more", PARTS, ids=IDS)
def test_every_key_is_classified(name, part, honoured, more):
    config = checkpoints.MODELS[name]()
    keys = keys_of(type(getattr(config, part) if part else config))
    assert "hidden_size" in keys or part == ""
    assert keys - (honoured | more | READ_ELSEWHERE | WITHOUT_EFFECT | REFUSED.keys()) == set()


def test_every_rope_key_is_classified():
    known = getattr(modeling_rope_utils, "RopeParameters", None)
    assert set(getattr(known, "__annotations__", {})) - ROPE == set()


# The parts of the others are read by the same code.
PROBED = [i for i, (name, part, *_) in enumerate(PARTS) if (name, part) not in [
    ("vl25-windows", "text_config"), ("vl25-windows", ""), ("llava-default", "text_config"), ("smolvlm-tied", "text_config"),
    ("smolvlm-tied", "vision_config"), ("internvl-tied", "text_config"), ("internvl-qwen3", "text_config"),
    ("gemma3", "text_config"),
    ("pixtral", "text_config"), ("next-mistral", "text_config"), ("next-mistral", "vision_config"), ("onevision-tied", "text_config"),
    *(("idefics3-text-tiles", part) for part in ("text_config", "vision_config", ""))]]


@pytest.mark.parametrize("name, part, honoured, more", [PARTS[i] for i in PROBED], ids=[IDS[i] for i in PROBED])
def test_keys_are_read_refused_or_ignored(name, part, honoured, more, tmp_path):
    """A value of a different type reveals whether a key is read: the error then names it."""
    said = Refusals(written(name, tmp_path), part, tmp_path)
    odd = [{"odd": "value"}]
    ignored = {"rope_parameters"} if part_of(said.config, part).get("rope_scaling") else set()
    keys = sorted(honoured - ignored)
    unknown, passed_over, *refusals = said.of_each([
        {"x": 1}, dict.fromkeys(more | WITHOUT_EFFECT - {"transformers_version"}, odd),
        *({key: value} for key, value in REFUSED.items()), *({key: odd} for key in keys)])
    assert unknown is None and passed_over is None
    for key, refusal in zip([*REFUSED, *keys], refusals, strict=True):
        assert refusal and (key in refusal or key == "text_config"), (key, refusal)


def test_sliding_windows_equal_transformers():
    """In any release: the last positions, including the query's own."""
    seen = transformers.masking_utils.sliding_window_causal_mask_function(3)
    places = torch.arange(5)
    assert [[bool(seen(0, 0, q, k)) for k in places] for q in places] == [
        [True, False, False, False, False], [True, True, False, False, False], [True, True, True, False, False],
        [False, True, True, True, False], [False, False, True, True, True]]


def test_each_served_type_has_a_reference(tmp_path):
    """A family that joins the program needs one in families.py, or all suites pass without it."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "unheard_of"}))
    (report,) = inspect([tmp_path])
    served = json.dumps(report).split("supported types: ")[1].split('"')[0]
    assert set(served.split(", ")) == set(families.BY_TYPE)
