// LLaVA-NeXT (transformers: modeling_llava_next.py): LLaVA over the tiles of a picture, with a
// decoder of Llama, Mistral or Qwen2.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family llava_next_family();

}  // namespace valora::models
