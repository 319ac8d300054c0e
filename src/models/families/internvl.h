// InternVL in Hugging Face's format (transformers: modeling_internvl.py): InternViT over a
// picture's tiles, pixel shuffle, a projector, and a Qwen2, Qwen3 or Llama decoder.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family internvl_family();

}  // namespace valora::models
