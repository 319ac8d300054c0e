// Qwen2.5-VL (transformers: modeling_qwen2_5_vl.py): Qwen2-VL with window attention in the vision
// tower and temporal positions in units of time.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen2_5_vl_family();

}  // namespace valora::models
