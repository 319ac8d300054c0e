// Qwen2-VL (transformers: modeling_qwen2_vl.py): a vision tower for images of any resolution whose
// patches are merged 2×2 into tokens of a Qwen2 decoder with M-RoPE positions.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen2_vl_family();

}  // namespace valora::models
