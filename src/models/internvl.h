// InternVL in Hugging Face's format (transformers: modeling_internvl.py): InternViT tower over the
// tiles of a picture, pixel shuffle, projector, and a decoder of Qwen2, Qwen3 or Llama.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family internvl_family();

}  // namespace valora::models
