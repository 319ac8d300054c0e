// Qwen3-VL, also with mixtures of experts (transformers: modeling_qwen3_vl.py,
// modeling_qwen3_vl_moe.py): a Qwen3 decoder with interleaved M-RoPE, whose
// first layers' outputs receive embeddings from several depths of the vision tower; in the prompt,
// each frame of a video follows its timestamp.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen3_vl_family();
Family qwen3_vl_moe_family();

}  // namespace valora::models
