#include "media/image/tiff_layout.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace valora::media {
namespace {

// Photometric interpretations.
constexpr int kWhiteIsZero = 0, kBlackIsZero = 1, kTiffRgb = 2, kTiffPalette = 3, kInks = 5;
constexpr uint16_t kPremultiplied = 1;  // a meaning of an extra sample

bool is_one_of(int value, std::initializer_list<int> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool grey_is_known(const TiffTags& tags) {
  if (tags.samples == 2)
    return tags.photometric == kBlackIsZero && tags.bits == 8 && tags.sample_format == 1 &&
           tags.extra.size() == 1 && tags.extra[0] != kPremultiplied;
  if (tags.samples != 1 || !tags.extra.empty()) return false;
  if (tags.sample_format == 3) return tags.bits == 32;
  if (tags.sample_format == 2)
    return tags.photometric == kBlackIsZero && is_one_of(tags.bits, {8, 16, 32});
  return is_one_of(tags.bits, {1, 2, 4, 8, 16}) ||
         (tags.photometric == kBlackIsZero && is_one_of(tags.bits, {12, 32}));
}

bool palette_is_known(const TiffTags& tags) {
  if (tags.sample_format != 1 || tags.colour_map[0] == nullptr) return false;
  if (tags.samples == 2) return tags.bits == 8 && tags.extra.size() == 1;
  return tags.samples == 1 && tags.extra.empty() && is_one_of(tags.bits, {1, 2, 4, 8});
}

bool colour_is_known(const TiffTags& tags) {
  const int colours = tags.photometric == kInks ? 4 : 3;
  const auto extra = static_cast<int>(tags.extra.size());
  // A fourth sample without a meaning is alpha.
  const bool unnamed = tags.photometric == kTiffRgb && extra == 0 && tags.samples == 4;
  return tags.sample_format == 1 && is_one_of(tags.bits, {8, 16}) &&
         (tags.samples == colours + extra || unnamed) && tags.samples <= 6;
}

const char* name_of(int photometric) {
  switch (photometric) {
    case 4: return "a transparency mask";
    case 8:
    case 9:
    case 10: return "CIELAB colours";
    case 32803: return "the raw data of a camera";
    default: return "colours of an unknown kind";
  }
}

uint8_t clipped(int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); }

// a * b / 255, rounded as in PIL.
int product_255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

template <typename T>
T read_as(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

Result<TiffLayout> TiffLayout::of(const TiffTags& tags) {
  const int kind = tags.photometric;
  const bool named = is_one_of(kind, {kWhiteIsZero, kBlackIsZero, kTiffRgb, kTiffPalette, kInks});
  if (!named)
    return broken_image("TIFF image", fmt::format("it holds {}: send it as RGB", name_of(kind)));
  const bool known = kind == kTiffRgb || kind == kInks ? colour_is_known(tags)
                     : kind == kTiffPalette            ? palette_is_known(tags)
                                                       : grey_is_known(tags);
  if (!known)
    return broken_image(
        "TIFF image",
        fmt::format("{} samples of {} bits with photometric interpretation {} are not supported: "
                    "send it as RGB",
                    tags.samples, tags.bits, kind));
  return TiffLayout(tags);
}

uint32_t TiffLayout::sample(const uint8_t* row, int64_t index) const {
  const int bits = tags_.bits;
  if (bits == 8) return row[index];
  if (bits == 16) return read_as<uint16_t>(row + index * 2);
  const int64_t at = index * bits;
  if (bits == 12) {
    const uint8_t* pair = row + at / 8;
    return at % 8 == 0 ? uint32_t(pair[0]) << 4 | pair[1] >> 4
                       : uint32_t(pair[0] & 15) << 8 | pair[1];
  }
  return row[at / 8] >> (8 - bits - static_cast<int>(at % 8)) & ((1u << bits) - 1);
}

// PIL clips grey of more than eight bits instead of scaling it, and never inverts it.
uint8_t TiffLayout::grey(const uint8_t* row, int64_t index) const {
  if (tags_.sample_format == 3) {
    const auto value = read_as<float>(row + index * 4);
    return value >= 255 ? 255 : value > 0 ? static_cast<uint8_t>(value) : 0;
  }
  // PIL takes a 32-bit sample, and signed ones but those of 8 bits, as signed.
  if (tags_.bits == 32) return clipped(read_as<int32_t>(row + index * 4));
  if (tags_.bits == 16 && tags_.sample_format == 2)
    return clipped(read_as<int16_t>(row + index * 2));
  const uint32_t value = sample(row, index);
  if (tags_.bits > 8) return clipped(value);
  const auto level = static_cast<uint8_t>(value * 255 / ((1u << tags_.bits) - 1));
  return tags_.photometric == kWhiteIsZero ? static_cast<uint8_t>(255 - level) : level;
}

void TiffLayout::unpack_one(const uint8_t* row, int64_t width, uint8_t* rgb) const {
  for (int64_t x = 0; x < width; ++x, rgb += 3) {
    const int64_t index = x * tags_.samples;
    if (tags_.photometric != kTiffPalette) {
      rgb[0] = rgb[1] = rgb[2] = grey(row, index);
      continue;
    }
    const uint32_t entry = sample(row, index);
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(tags_.colour_map[c][entry] >> 8);
  }
}

// pixel: one byte of each sample.
void TiffLayout::unpack_colour(const uint8_t* pixel, uint8_t* rgb) const {
  if (tags_.photometric == kInks) {
    const int white = 255 - pixel[3];
    for (int c = 0; c < 3; ++c) rgb[c] = clipped(white - product_255(pixel[c], white));
    return;
  }
  std::memcpy(rgb, pixel, 3);
  if (tags_.extra.empty() || tags_.extra[0] != kPremultiplied) return;
  const int alpha = pixel[3];
  for (int c = 0; c < 3; ++c)
    rgb[c] = alpha == 0 ? uint8_t{0} : alpha == 255 ? pixel[c] : clipped(pixel[c] * 255 / alpha);
}

void TiffLayout::unpack(const uint8_t* row, int64_t width, uint8_t* rgb) const {
  if (tags_.photometric != kTiffRgb && tags_.photometric != kInks)
    return unpack_one(row, width, rgb);
  uint8_t pixel[6];
  for (int64_t x = 0; x < width; ++x, rgb += 3) {
    // PIL keeps the high byte of 16 bits.
    for (int s = 0; s < tags_.samples; ++s) {
      const int64_t index = x * tags_.samples + s;
      pixel[s] = tags_.bits == 8 ? row[index]
                                 : static_cast<uint8_t>(read_as<uint16_t>(row + index * 2) >> 8);
    }
    unpack_colour(pixel, rgb);
  }
}

}  // namespace valora::media
