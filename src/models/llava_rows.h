// The visual tokens of LLaVA-NeXT and LLaVA-OneVision, from those of single tiles (transformers:
// pack_image_features, apply_pooling).
#pragma once

#include <ATen/ATen.h>

#include "media/processor.h"

namespace valora::models {

// x: [grid_t * side², hidden], of a picture's or video's tiles. newline: [hidden].
// → [input.tokens, hidden]: the whole picture, then the rows of its tiles without their padding,
// each with a newline behind it; or the frames with rows and columns halved, and one newline.
// Throws c10::Error if the input's tiles are none of these.
at::Tensor with_newlines(const at::Tensor& x, const media::VisualInput& input, int64_t side,
                         const at::Tensor& newline);

}  // namespace valora::models
