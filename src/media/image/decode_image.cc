#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "media/image/decoders.h"
#include "media/image/orientation.h"

namespace valora::media {
namespace {

bool starts_with(ByteSpan bytes, std::string_view prefix, size_t offset = 0) {
  return bytes.size() >= offset + prefix.size() &&
         std::memcmp(bytes.data() + offset, prefix.data(), prefix.size()) == 0;
}

struct Decoder {
  Result<StoredImage> (*decode)(ByteSpan, const Limits&);
  Result<StoredSize> (*size)(ByteSpan, const Limits&);
  const char* type;
};

constexpr char kRemedy[] = "send JPEG, PNG, WebP, GIF, HEIC, AVIF, BMP or TIFF";

// AVIF and HEIC are files of the same kind; "mif1" stands for either.
std::optional<Decoder> decoder_of_brands(ByteSpan bytes) {
  const std::vector<std::string_view> brands = file_brands(bytes);
  for (const std::string_view brand : brands) {
    if (brand == "avif" || brand == "avis") return Decoder{decode_avif, avif_size, "image/avif"};
    for (const char* heic : {"heic", "heix", "heim", "heis", "hevc", "hevx"})
      if (brand == heic) return Decoder{decode_heic, heic_size, "image/heic"};
  }
  if (!brands.empty() && brands[0] == "mif1") return Decoder{decode_heic, heic_size, "image/heic"};
  return {};
}

std::optional<Decoder> known_decoder(ByteSpan bytes) {
  if (starts_with(bytes, "\xff\xd8\xff") && !starts_with(bytes, "\xf7", 3))
    return Decoder{decode_jpeg, jpeg_size, "image/jpeg"};
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return Decoder{decode_png, png_size, "image/png"};
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8))
    return Decoder{decode_webp, webp_size, "image/webp"};
  if (starts_with(bytes, "GIF87a") || starts_with(bytes, "GIF89a"))
    return Decoder{decode_gif, gif_size, "image/gif"};
  if (is_bmp(bytes)) return Decoder{decode_bmp, bmp_size, "image/bmp"};
  if (is_tiff(bytes)) return Decoder{decode_tiff, tiff_size, "image/tiff"};
  return decoder_of_brands(bytes);
}

Result<Decoder> decoder_of(ByteSpan bytes, const Limits& limits) {
  if (bytes.empty()) return invalid("the image is empty");
  if (bytes.size() > limits.max_bytes)
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the image of {} bytes is over the limit of {} bytes", bytes.size(),
                             limits.max_bytes),
                 {}};
  if (const auto found = known_decoder(bytes)) return *found;
  const std::string name = other_format(bytes);
  if (!name.empty()) return invalid(fmt::format("the image is {}: {}", name, kRemedy));
  return invalid(fmt::format("the image is not of a known format: {}", kRemedy));
}

}  // namespace

Error broken_image(std::string_view what, std::string_view reason) {
  return invalid(fmt::format("the {} cannot be decoded: {}", what, reason));
}

Status check_size(std::string_view what, int64_t width, int64_t height, const Limits& limits) {
  if (width <= 0 || height <= 0) return broken_image(what, "it has no pixels");
  // Each side is below 2^31 in every format, so the product does not overflow.
  if (width * height > limits.max_pixels)
    return Error{ErrorCode::kPayloadTooLarge,
                 fmt::format("the {} of {} x {} pixels is over the limit of {} pixels", what, width,
                             height, limits.max_pixels),
                 {}};
  return {};
}

Image blank_image(int64_t width, int64_t height) {
  Image image{static_cast<int>(width), static_cast<int>(height), {}};
  image.rgb.resize(size_t(width) * size_t(height) * 3);
  return image;
}

std::string image_type(std::span<const uint8_t> bytes) {
  const auto decoder = known_decoder(bytes);
  return decoder ? decoder->type : "application/octet-stream";
}

Result<Image> decode_image(std::span<const uint8_t> bytes, const Limits& limits) {
  VALORA_TRY(decoder, decoder_of(bytes, limits));
  VALORA_TRY(stored, decoder.decode(bytes, limits));
  return upright(std::move(stored.image), stored.orientation);
}

Result<ImageSize> image_size(std::span<const uint8_t> bytes, const Limits& limits) {
  VALORA_TRY(decoder, decoder_of(bytes, limits));
  VALORA_TRY(stored, decoder.size(bytes, limits));
  const ImageSize size{static_cast<int>(stored.width), static_cast<int>(stored.height)};
  return swaps_sides(stored.orientation) ? ImageSize{size.height, size.width} : size;
}

}  // namespace valora::media
