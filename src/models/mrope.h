// M-RoPE positions (transformers: get_rope_index of Qwen2VLModel and Qwen2_5_VLModel).
#pragma once

#include <span>

#include "models/model.h"

namespace valora::models {

// Text advances all three axes together; a visual input spreads over (t, h, w) from where it
// begins, and what follows starts behind its largest position. spec.time_positions_per_second: a
// video's temporal axis counts time (Qwen2.5-VL) instead of temporal patches.
Positions mrope_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);

}  // namespace valora::models
