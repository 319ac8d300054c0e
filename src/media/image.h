// Decoded pictures: 8-bit RGB, row-major, equal to PIL's Image.open(...), exif_transpose,
// convert("RGB").
#pragma once

#include <chrono>
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
  size_t max_bytes = size_t{32} << 20;     // of one encoded image
  int64_t max_pixels = int64_t{64} << 20;  // width * height after decoding, also of a video frame
  size_t max_video_bytes = size_t{256} << 20;     // of one encoded video
  int max_frames = 768;                           // kept frames of one video
  int64_t max_video_pixels = int64_t{256} << 20;  // of all kept frames (3 bytes each)
  int64_t max_decoded_frames = 200'000;           // of one video, kept or not
  std::chrono::seconds max_decode_time{60};       // of one video
  int max_visual_tokens = 65'536;  // of one image or video, checked before patches are made
};

// JPEG, PNG (alpha dropped as in PIL's convert, 16 bit, palette, interlaced), WebP and GIF (the
// first frame of animated files). The orientation of EXIF is applied, or of XMP if EXIF has none
// (except in compressed PNG text). The header is checked against the limits before pixels are
// allocated. Above a limit: kPayloadTooLarge. Truncated, corrupt or other bytes: kInvalidArgument
// with the reason.
Result<Image> decode_image(std::span<const uint8_t> bytes, const Limits& limits);

struct ImageSize {
  int width = 0;
  int height = 0;
};
// The size of decode_image's result, from the header alone: pixels are neither decoded nor checked.
Result<ImageSize> image_size(std::span<const uint8_t> bytes, const Limits& limits);

enum class Resample : uint8_t { kBicubic, kLanczos, kBilinear };
// PIL's Image.resize((width, height), …), bit for bit. All sides are at least 1.
Image resize_image(const Image& image, int width, int height, Resample filter);
inline Image resize_bicubic(const Image& image, int width, int height) {
  return resize_image(image, width, height, Resample::kBicubic);
}

}  // namespace valora::media
