// The size that Qwen's processors resize a picture to.
#pragma once

#include "base/result.h"

namespace valora::media {

struct PixelBounds {
  double min = 56 * 56;
  double max = 28 * 28 * 1280;
};

struct PixelSize {
  int width = 0;
  int height = 0;
};

// Rounds both sides to multiples of `factor` and keeps the area within `bounds`, preserving the
// aspect ratio as closely as possible. An aspect ratio over 200 is an error. least: lower limit of
// a rounded side: 0 as in transformers, which then enlarges a picture that is too thin, or `factor`
// as in qwen_vl_utils.
Result<PixelSize> smart_resize(int width, int height, int factor, PixelBounds bounds,
                               int least = 0);

// The same for the frames of a video whose pixels are bounded together (Qwen3-VL). Frames with a
// side below `factor` are enlarged first. Fewer frames than one temporal patch are an error.
Result<PixelSize> smart_resize_video(int width, int height, int64_t frames, int temporal_patch,
                                     int factor, PixelBounds bounds);

}  // namespace valora::media
