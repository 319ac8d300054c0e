// How a TIFF's samples become RGB, in the combinations that PIL reads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "media/image/decoders.h"

namespace valora::media {

// The tags that say what the samples mean.
struct TiffTags {
  int photometric = 0;
  int bits = 1;           // of each sample
  int samples = 1;        // per pixel
  int sample_format = 1;  // 1: unsigned, 2: signed, 3: floating point
  std::vector<uint16_t> extra;
  std::array<const uint16_t*, 3> colour_map{};  // palettes only, 1 << bits entries each
};

class TiffLayout {
 public:
  // kInvalidArgument for combinations that PIL does not read.
  static Result<TiffLayout> of(const TiffTags& tags);

  // Unpacks a row of pixels whose samples follow each other, in the host's byte order.
  void unpack(const uint8_t* row, int64_t width, uint8_t* rgb) const;
  int samples() const { return tags_.samples; }
  int sample_bits() const { return tags_.bits; }

 private:
  explicit TiffLayout(const TiffTags& tags) : tags_(tags) {}
  void unpack_one(const uint8_t* row, int64_t width, uint8_t* rgb) const;
  void unpack_colour(const uint8_t* pixel, uint8_t* rgb) const;
  uint8_t grey(const uint8_t* row, int64_t index) const;
  uint32_t sample(const uint8_t* row, int64_t index) const;

  TiffTags tags_;
};

}  // namespace valora::media
