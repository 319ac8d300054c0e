// One decoder per format for decode_image(). Each checks the header's size before it allocates
// pixels, and returns the pixels as stored; decode_image() applies the orientation.
#pragma once

#include <span>
#include <string>

#include "media/image/image.h"

namespace valora::media {

using ByteSpan = std::span<const uint8_t>;

struct StoredImage {
  Image image;
  int orientation = 1;  // EXIF's 1 to 8
};

// The header's size, checked against the limits.
struct StoredSize {
  int64_t width = 0, height = 0;
  int orientation = 1;
};

Result<StoredImage> decode_jpeg(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_png(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_webp(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_gif(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_bmp(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_tiff(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_avif(ByteSpan bytes, const Limits& limits);
Result<StoredImage> decode_heic(ByteSpan bytes, const Limits& limits);

Result<StoredSize> jpeg_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> png_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> webp_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> gif_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> bmp_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> tiff_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> avif_size(ByteSpan bytes, const Limits& limits);
Result<StoredSize> heic_size(ByteSpan bytes, const Limits& limits);

bool is_bmp(ByteSpan bytes);
bool is_tiff(ByteSpan bytes);

Error broken_image(std::string_view what, std::string_view reason);
// kPayloadTooLarge above limits.max_pixels; kInvalidArgument for an empty picture.
Status check_size(std::string_view what, int64_t width, int64_t height, const Limits& limits);
// Zeroed pixels. The caller must have checked the size.
Image blank_image(int64_t width, int64_t height);

// A format that is recognised only to be named in an error: "JPEG XL", "a PDF document"; empty for
// unknown data.
std::string other_format(ByteSpan bytes);

// The brands of an ISO base media file ("heic", "avif", "isom"), the major one first; empty for
// other data.
std::vector<std::string_view> file_brands(ByteSpan bytes);

}  // namespace valora::media
