"""Writes the trained base model as an ordinary Hugging Face folder in bf16, and loads it again."""

import json
import shutil

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, Qwen2VLForConditionalGeneration, Qwen2VLImageProcessor

from model import MEAN, MERGE, PATCH, STD, TEMPORAL, build
from prompt import TEMPLATE
from tokenizer import save

PIXELS = {"shortest_edge": 1024, "longest_edge": 16384}
SHAPE = {"patch_size": PATCH, "temporal_patch_size": TEMPORAL, "merge_size": MERGE, "size": PIXELS,
         "min_pixels": PIXELS["shortest_edge"], "max_pixels": PIXELS["longest_edge"],
         "image_mean": [round(float(v), 8) for v in MEAN], "image_std": [round(float(v), 8) for v in STD]}


def write(checkpoint, tokenizer_folder, folder):
    tokenizer = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    model = build(tokenizer)
    model.load_state_dict(torch.load(checkpoint, weights_only=True)["model"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ends = [tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")]
    model.generation_config = GenerationConfig(bos_token_id=ends[1], eos_token_id=ends, pad_token_id=ends[1], do_sample=False)
    model.to(torch.bfloat16).save_pretrained(folder)
    # transformers 4.57 writes the architecture inside text_config; other readers expect it at the top level, as on the
    # hub.
    config = json.loads((folder / "config.json").read_text())
    architectures = config["text_config"].pop("architectures")
    config["text_config"]["rope_scaling"] = {"type": "mrope", "mrope_section": config["text_config"]["rope_scaling"]["mrope_section"]}
    config = {"architectures": architectures, **config, "tie_word_embeddings": True, "bos_token_id": ends[1], "eos_token_id": ends[0]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    # transformers leaves out what is its default; servers sample where the file does not say.
    file = folder / "generation_config.json"
    file.write_text(json.dumps({"do_sample": False, **json.loads(file.read_text())}, indent=2) + "\n")
    save(tokenizer, folder, TEMPLATE)
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}, indent=2) + "\n")
    images = {"do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True, "rescale_factor": 1 / 255,
              "resample": 3, "processor_class": "Qwen2VLProcessor"} | SHAPE
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "Qwen2VLImageProcessor"} | images, indent=2) + "\n")
    videos = {"video_processor_type": "Qwen2VLVideoProcessor", "do_sample_frames": True, "fps": 2, "min_frames": 4, "max_frames": 32} | images
    (folder / "video_preprocessor_config.json").write_text(json.dumps(videos, indent=2) + "\n")


def load(folder):
    """Loads the saved bf16 weights for fp32 computation."""
    model = Qwen2VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), Tokenizer.from_file(str(folder / "tokenizer.json")), Qwen2VLImageProcessor.from_pretrained(folder)
