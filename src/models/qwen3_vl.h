// Qwen3-VL (transformers: modeling_qwen3_vl.py): a Qwen3 decoder with interleaved M-RoPE, whose
// first layers' outputs get embeddings from several depths of the vision tower; the frames of a
// video stand apart in the prompt, each behind its time.
#pragma once

#include "models/registry.h"

namespace valora::models {

Family qwen3_vl_family();

}  // namespace valora::models
