// Decoded pictures: 8-bit RGB, row-major, as PIL's Image.open(...).convert("RGB") gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::media {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3
};

struct Limits {
  size_t max_bytes = size_t{32} << 20;         // of one encoded image
  int64_t max_pixels = int64_t{64} << 20;      // width * height after decoding
  size_t max_video_bytes = size_t{256} << 20;  // of one encoded video
  int max_frames = 768;                        // kept frames of one video
};

// JPEG (EXIF orientation applied), PNG (alpha dropped as PIL's convert does, 16 bit, palette,
// interlaced), WebP and GIF (first frame of animated files). The header is checked against the limits
// before pixels are allocated. Truncated or foreign bytes: kInvalidArgument with the reason.
Result<Image> decode_image(std::span<const uint8_t> bytes, const Limits& limits);

// PIL's Image.resize((width, height), BICUBIC), bit for bit.
Image resize_bicubic(const Image& image, int width, int height);

}  // namespace valora::media
