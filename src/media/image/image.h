// Decoded pictures: 8-bit RGB, row-major, identical to PIL's Image.open(...), exif_transpose,
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
  size_t max_bytes = size_t{32} << 20;     // per encoded image
  int64_t max_pixels = int64_t{64} << 20;  // width * height after decoding, also of a video frame
  size_t max_video_bytes = size_t{256} << 20;     // per encoded video
  int max_frames = 768;                           // kept frames per video
  int64_t max_video_pixels = int64_t{256} << 20;  // over all kept frames (3 bytes each)
  int64_t max_decoded_frames = 200'000;           // per video, kept or not
  std::chrono::seconds max_decode_time{60};       // per video
  int max_visual_tokens = 65'536;  // per image or video; checked before patches are made
};

// Decodes JPEG, PNG (16-bit, palette and interlaced included; alpha dropped as in PIL's convert),
// WebP, GIF, BMP, TIFF, AVIF and HEIC (the first frame or page of files with several, and HEIC's
// primary picture). Applies the orientation from EXIF, or else from XMP (except in compressed PNG
// text), or what the container says (AVIF, HEIC). Checks the header against the limits before
// allocating pixels: kPayloadTooLarge above a limit. Truncated, corrupt or other data:
// kInvalidArgument with the reason, which names other formats.
Result<Image> decode_image(std::span<const uint8_t> bytes, const Limits& limits);

// The media type of a picture that decode_image() takes, by its first bytes:
// "application/octet-stream" for anything else.
std::string image_type(std::span<const uint8_t> bytes);

struct ImageSize {
  int width = 0;
  int height = 0;
};
// The size of decode_image()'s result, from the header alone; pixels are neither decoded nor
// checked.
Result<ImageSize> image_size(std::span<const uint8_t> bytes, const Limits& limits);

enum class Resample : uint8_t { kBicubic, kLanczos, kBilinear };
// PIL's Image.resize((width, height), …), bit for bit. All sides must be at least 1.
Image resize_image(const Image& image, int width, int height, Resample filter);
inline Image resize_bicubic(const Image& image, int width, int height) {
  return resize_image(image, width, height, Resample::kBicubic);
}

}  // namespace valora::media
