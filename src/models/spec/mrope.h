// M-RoPE positions (transformers: get_rope_index of Qwen2VLModel, Qwen2_5_VLModel, Qwen3VLModel).
#pragma once

#include <span>

#include "models/spec/model_spec.h"
#include "models/spec/positions.h"

namespace valora::models {

// Positions on three axes (t, h, w). Text advances all three together. The span of a visual input
// extends over (t, h, w) from its starting position, and the next token continues after its largest
// position. If spec.time_positions_per_second is set, a video's temporal axis counts time
// (Qwen2.5-VL) instead of temporal patches.
Positions mrope_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);

}  // namespace valora::models
