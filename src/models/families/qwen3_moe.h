// Qwen3 with mixtures of experts (transformers: modeling_qwen3_moe.py), text only.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen3_moe_family();

}  // namespace valora::models
