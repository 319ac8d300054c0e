// LLaVA-1.5: CLIP tower, two-layer projector, Llama decoder (transformers: modeling_llava.py).
#pragma once

#include "models/registry.h"

namespace valora::models {

Family llava_family();

}  // namespace valora::models
