// The size that Qwen's processors resize a picture to.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace valora::media {

struct PixelBounds {
  int64_t min = 56 * 56;
  int64_t max = 28 * 28 * 1280;
};

struct PixelSize {
  int width = 0;
  int height = 0;
};

// Both sides become multiples of `factor`, and the area lies within `bounds`, with the aspect ratio
// kept as closely as possible. An aspect ratio over 200 is an error.
Result<PixelSize> smart_resize(int width, int height, int factor, PixelBounds bounds);

}  // namespace valora::media
