// LLaVA-NeXT (transformers: modeling_llava_next.py): LLaVA over a picture's tiles, with a Llama,
// Mistral or Qwen2 decoder.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family llava_next_family();

}  // namespace valora::models
