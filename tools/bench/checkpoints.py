"""Random checkpoints with real shapes for benchmarks: a decoder of Qwen2-0.5B, Qwen2-VL-2B or Qwen2-VL-7B, with or without
Qwen2-VL's tower, and PEFT adapters on its seven linears."""

import json
import os

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
)

DECODER = dict(vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24,
               num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=32768, rms_norm_eps=1e-6,
               rope_theta=1e6, tie_word_embeddings=True, bos_token_id=None, eos_token_id=151645)
DECODERS = {  # by billions of parameters; the second is Qwen2-VL-2B's, the third Qwen2-VL-7B's
    "0.5": DECODER,
    "1.5": DECODER | dict(hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12),
    "7": DECODER | dict(vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
                        num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False),
}
# A decoder of the demo's size, for training runs of small models, where kernel launches take
# microseconds.
SMALL = DECODER | dict(vocab_size=1280, hidden_size=192, intermediate_size=512, num_hidden_layers=5, num_attention_heads=6,
                       num_key_value_heads=2, eos_token_id=1202)
TOWER = dict(depth=32, embed_dim=1280, hidden_size=896, num_heads=16, mlp_ratio=4, patch_size=14,
             spatial_merge_size=2, temporal_patch_size=2)
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
DELTA_LINEARS = ["in_proj_qkv", "in_proj_z", "out_proj"]  # of Qwen3.5
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VISUAL = ["<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>",
          "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
ROLES = ["system", "user", "assistant"]
SPLIT = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""


def write_tokenizer(folder, decoder=DECODER):
    """Writes a tokenizer with one token per byte, one per role, as in Qwen2's, and Qwen2's special tokens at their ids. The
    benchmarks do not measure text processing."""
    first = decoder["eos_token_id"] - SPECIAL.index("<|im_end|>")
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens += [f"unused{i}" for i in range(len(tokens), first - len(ROLES))] + ROLES  # special token ids follow the vocabulary
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(tokens)}, merges=[]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    data = json.loads(tokenizer.to_str())
    ids = dict(enumerate(ROLES + SPECIAL + VISUAL, first - len(ROLES)))
    data["added_tokens"] = [dict(id=i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False,
                                 special=c not in ROLES) for i, c in sorted(ids.items())]
    with open(os.path.join(folder, "tokenizer.json"), "w") as file:
        json.dump(data, file)


def write_preprocessor(folder):
    with open(os.path.join(folder, "preprocessor_config.json"), "w") as file:
        json.dump(dict(image_processor_type="Qwen2VLImageProcessor", patch_size=14, merge_size=2, temporal_patch_size=2,
                       min_pixels=3136, max_pixels=12845056, do_resize=True, do_rescale=True, do_normalize=True,
                       do_convert_rgb=True, rescale_factor=1 / 255, resample=3,
                       image_mean=[0.48145466, 0.4578275, 0.40821073],
                       image_std=[0.26862954, 0.26130258, 0.27577711]), file)


def build(tower, decoder=DECODER):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        if not tower:
            return Qwen2ForCausalLM(Qwen2Config(**decoder)).eval()
        place = (decoder["hidden_size"] // decoder["num_attention_heads"] // 2 - 16) // 2  # frequencies of height, of width
        config = Qwen2VLConfig(text_config=decoder | {"rope_scaling": {"type": "mrope", "mrope_section": [16, place, place]}},
                               vision_config=TOWER | {"hidden_size": decoder["hidden_size"]})
        return Qwen2VLForConditionalGeneration(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def make(folder, tower, adapters, rank, decoder=DECODER, model=None):
    """Writes FOLDER/model and FOLDER/adapter-I once; returns the model folder and the adapter folders. model: class to use instead
    of Qwen2's."""
    model_dir = os.path.join(folder, "model")
    dirs = [os.path.join(folder, f"adapter-{i}") for i in range(adapters)]
    if all(os.path.exists(os.path.join(d, "adapter_config.json")) for d in dirs):
        return model_dir, dirs
    model = model or build(tower, decoder)
    model.save_pretrained(model_dir)
    write_tokenizer(model_dir, decoder)
    write_preprocessor(model_dir)
    # Language model only: a list would also match modules of the same names in the tower.
    targets = r".*layers\.\d+\.(self_attn|mlp|linear_attn)\.(" + "|".join(LINEARS + DELTA_LINEARS) + ")"
    for i, path in enumerate(dirs):
        torch.manual_seed(100 + i)
        wrapped = get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets))
        for name, weight in wrapped.named_parameters():
            if "lora_" in name:
                weight.data = (torch.randn_like(weight.data, dtype=torch.float32) * 0.02).to(torch.bfloat16)
        wrapped.save_pretrained(path)
        model = wrapped.unload()
    return model_dir, dirs
