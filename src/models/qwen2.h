// Qwen2 (transformers: modeling_qwen2.py), text only.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen2_family();

}  // namespace valora::models
