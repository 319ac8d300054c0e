// Turns the tokens of single tiles into the visual tokens of LLaVA-NeXT and LLaVA-OneVision
// (transformers: pack_image_features, apply_pooling).
#pragma once

#include <ATen/ATen.h>

#include "media/processors/processor.h"

namespace valora::models {

// x: [grid_t * side², hidden], the tiles of a picture or video. newline: [hidden]. → [input.tokens,
// hidden]. For a picture: the whole picture, then the rows of its tiles without padding, each
// followed by a newline. For a video: the frames with rows and columns halved, and one newline.
// Throws c10::Error if the input's tiles fit neither.
at::Tensor with_newlines(const at::Tensor& x, const media::VisualInput& input, int64_t side,
                         const at::Tensor& newline);

}  // namespace valora::models
