// Decodes BMP as PIL does. libav's decoder knows other layouts of bits and other run lengths.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "media/image/decoders.h"

namespace valora::media {
namespace {

constexpr char kBmp[] = "BMP image";
constexpr size_t kFileHeader = 14;

enum class BmpCoding : uint8_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3 };

struct BmpHeader {
  int64_t width = 0, height = 0;
  bool top_down = false;
  int bits = 0;
  BmpCoding coding = BmpCoding::kPlain;
  std::array<uint32_t, 3> masks{};  // red, green, blue
  ByteSpan palette;
  size_t entry = 4;  // bytes of a palette's colour
  size_t colours = 0;
  size_t pixels = 0;  // offset
};

uint32_t little_endian(ByteSpan bytes, size_t at, int count) {
  uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | bytes[at + i];
  return value;
}

bool is_header_size(uint32_t size) {
  constexpr uint32_t kSizes[] = {12, 40, 52, 56, 64, 108, 124};
  return std::find(std::begin(kSizes), std::end(kSizes), size) != std::end(kSizes);
}

// Sizes, depth and coding.
Result<BmpHeader> read_fixed(ByteSpan bytes, uint32_t size) {
  BmpHeader header;
  if (size == 12) {
    header.width = little_endian(bytes, 18, 2), header.height = little_endian(bytes, 20, 2);
    header.bits = static_cast<int>(little_endian(bytes, 24, 2));
    header.entry = 3;
    return header;
  }
  header.width = static_cast<int32_t>(little_endian(bytes, 18, 4));
  header.height = static_cast<int32_t>(little_endian(bytes, 22, 4));
  header.top_down = header.height < 0;
  header.height = std::abs(header.height);
  header.bits = static_cast<int>(little_endian(bytes, 28, 2));
  const uint32_t coding = little_endian(bytes, 30, 4);
  if (coding > 3)
    return broken_image(kBmp, "its compression " + std::to_string(coding) + " is not supported");
  header.coding = static_cast<BmpCoding>(coding);
  header.colours = little_endian(bytes, 46, 4);
  return header;
}

Status check_coding(const BmpHeader& header) {
  constexpr int kDepths[] = {1, 4, 8, 16, 24, 32};
  if (std::find(std::begin(kDepths), std::end(kDepths), header.bits) == std::end(kDepths))
    return broken_image(kBmp, std::to_string(header.bits) + " bits a pixel are not supported");
  const bool fits = header.coding == BmpCoding::kRuns8   ? header.bits == 8
                    : header.coding == BmpCoding::kRuns4 ? header.bits == 4
                    : header.coding == BmpCoding::kMasks ? header.bits >= 16
                                                         : true;
  if (!fits) return broken_image(kBmp, "its compression does not suit its bits a pixel");
  return {};
}

// Colours as wide as a byte, or those of 16 bits that PIL reads.
bool masks_are_known(const BmpHeader& header) {
  using Masks = std::array<uint32_t, 3>;
  if (header.bits == 16)
    return header.masks == Masks{0xf800, 0x7e0, 0x1f} || header.masks == Masks{0x7c00, 0x3e0, 0x1f};
  return std::all_of(header.masks.begin(), header.masks.end(), [&](uint32_t mask) {
    const int shift = mask == 0 ? 0 : std::countr_zero(mask);
    return mask >> shift == 0xff && shift % 8 == 0 && shift < header.bits;
  });
}

Result<BmpHeader> read_header(ByteSpan bytes, const Limits& limits) {
  const uint32_t size = bytes.size() < kFileHeader + 12 ? 0 : little_endian(bytes, kFileHeader, 4);
  if (!is_header_size(size) || bytes.size() < kFileHeader + size)
    return broken_image(kBmp, "its header is truncated or of an unknown size");
  VALORA_TRY(header, read_fixed(bytes, size));
  VALORA_CHECK(check_size(kBmp, header.width, header.height, limits));
  VALORA_CHECK(check_coding(header));
  size_t at = kFileHeader + size;
  if (header.coding == BmpCoding::kMasks) {
    const size_t masks = kFileHeader + 40;  // within longer headers, behind the shortest
    if (bytes.size() < masks + 12) return broken_image(kBmp, "the file is truncated");
    for (int i = 0; i < 3; ++i) header.masks[i] = little_endian(bytes, masks + 4 * i, 4);
    if (header.bits == 32 && header.masks == std::array<uint32_t, 3>{})
      header.masks = {0xff0000, 0xff00, 0xff};
    if (!masks_are_known(header)) return broken_image(kBmp, "its bit masks are not supported");
    at = std::max(at, masks + 12);
  } else {
    header.masks = header.bits == 16 ? std::array<uint32_t, 3>{0x7c00, 0x3e0, 0x1f}
                                     : std::array<uint32_t, 3>{0xff0000, 0xff00, 0xff};
  }
  header.pixels = little_endian(bytes, 10, 4);
  if (header.bits <= 8) {
    if (header.colours == 0) header.colours = size_t{1} << header.bits;
    if (header.colours > 65536) return broken_image(kBmp, "its palette is too large");
    const size_t length = header.colours * header.entry;
    if (bytes.size() - at < length) return broken_image(kBmp, "its palette is truncated");
    header.palette = bytes.subspan(at, length);
    // Some writers leave the palette out of the offset.
    if (header.pixels == at) header.pixels = at + length;
    at += length;
  }
  if (header.pixels == 0) header.pixels = at;
  if (header.pixels > bytes.size()) return broken_image(kBmp, "the file is truncated");
  return header;
}

class BmpColours {
 public:
  explicit BmpColours(const BmpHeader& header) {
    const size_t stored = header.palette.size() / header.entry;  // none beyond 8 bits
    for (size_t i = 0; i < std::min(rgb_.size(), stored); ++i)
      for (size_t c = 0; c < 3; ++c) rgb_[i][c] = header.palette[i * header.entry + 2 - c];
  }
  const uint8_t* operator[](uint8_t index) const { return rgb_[index].data(); }

 private:
  std::array<std::array<uint8_t, 3>, 256> rgb_{};
};

// Scales a sample of up to 8 bits as PIL does.
uint8_t scaled(uint32_t pixel, uint32_t mask) {
  const int shift = std::countr_zero(mask);
  return static_cast<uint8_t>((pixel & mask) / (uint32_t{1} << shift) * 255 / (mask >> shift));
}

void unpack_row(const BmpHeader& header, const BmpColours& colours, const uint8_t* in,
                uint8_t* rgb) {
  for (int64_t x = 0; x < header.width; ++x, rgb += 3) {
    if (header.bits > 8) {
      const size_t bytes = size_t(header.bits) / 8;
      const uint32_t pixel = little_endian({in + size_t(x) * bytes, bytes}, 0, int(bytes));
      for (int c = 0; c < 3; ++c) rgb[c] = scaled(pixel, header.masks[c]);
      continue;
    }
    const int each = 8 / header.bits;  // pixels in a byte
    const int shift = (each - 1 - static_cast<int>(x % each)) * header.bits;
    const int index = in[x / each] >> shift & ((1 << header.bits) - 1);
    std::memcpy(rgb, colours[static_cast<uint8_t>(index)], 3);
  }
}

Status unpack_plain(const BmpHeader& header, ByteSpan bytes, Image& image) {
  const size_t row = (size_t(header.width) * header.bits + 7) / 8, stride = (row + 3) / 4 * 4;
  const ByteSpan data = bytes.subspan(header.pixels);
  if (data.size() < stride * (size_t(header.height) - 1) + row)
    return broken_image(kBmp, "the file is truncated");
  const BmpColours colours(header);
  for (int64_t y = 0; y < header.height; ++y) {
    const int64_t to = header.top_down ? y : header.height - 1 - y;
    unpack_row(header, colours, &data[size_t(y) * stride],
               &image.rgb[size_t(to) * size_t(header.width) * 3]);
  }
  return {};
}

// Run lengths, into palette indices in the file's order of rows.
class RunReader {
 public:
  RunReader(const BmpHeader& header, ByteSpan bytes, std::vector<uint8_t>& out)
      : bytes_(bytes),
        at_(header.pixels),
        width_(size_t(header.width)),
        nibbles_(header.coding == BmpCoding::kRuns4),
        out_(out) {}

  // False if the file ends before the picture.
  bool read() {
    while (written_ < out_.size()) {
      if (bytes_.size() - at_ < 2) return false;
      const uint8_t count = bytes_[at_++], value = bytes_[at_++];
      if (count > 0)
        run(count, value);
      else if (value == 1)
        return true;  // the rest keeps the first colour
      else if (!escape(value))
        return false;
    }
    return true;
  }

 private:
  void put(uint8_t index) {
    if (written_ < out_.size()) out_[written_++] = index;
  }
  void skip(size_t pixels) { written_ += std::min(pixels, out_.size() - written_); }

  void run(size_t count, uint8_t value) {
    count = std::min(count, width_ - std::min(width_, x_));
    for (size_t i = 0; i < count; ++i)
      put(!nibbles_ ? value : i % 2 == 0 ? uint8_t(value >> 4) : uint8_t(value & 15));
    x_ += count;
  }

  bool escape(uint8_t value) {
    if (value == 0) {
      skip((width_ - written_ % width_) % width_);
      x_ = 0;
      return true;
    }
    if (value == 2) {
      if (bytes_.size() - at_ < 2) return false;
      skip(bytes_[at_] + bytes_[at_ + 1] * width_);
      at_ += 2;
      x_ = written_ % width_;
      return true;
    }
    const size_t bytes = nibbles_ ? (size_t(value) + 1) / 2 : value;
    const size_t present = std::min(bytes, bytes_.size() - at_);
    for (size_t i = 0; i < value && (nibbles_ ? i / 2 : i) < present; ++i) {
      const uint8_t byte = bytes_[at_ + (nibbles_ ? i / 2 : i)];
      put(!nibbles_ ? byte : i % 2 == 0 ? uint8_t(byte >> 4) : uint8_t(byte & 15));
    }
    if (present < bytes) return written_ == out_.size();
    at_ += bytes;
    if (at_ % 2 != 0 && at_ < bytes_.size()) ++at_;
    x_ += value;
    return true;
  }

  ByteSpan bytes_;
  size_t at_, width_;
  bool nibbles_;
  std::vector<uint8_t>& out_;
  size_t written_ = 0, x_ = 0;
};

Status unpack_runs(const BmpHeader& header, ByteSpan bytes, Image& image) {
  std::vector<uint8_t> indices(size_t(header.width) * size_t(header.height));
  if (!RunReader(header, bytes, indices).read())
    return broken_image(kBmp, "its pixel data is truncated");
  const BmpColours colours(header);
  const uint8_t* index = indices.data();
  for (int64_t y = 0; y < header.height; ++y) {
    const int64_t to = header.top_down ? y : header.height - 1 - y;
    uint8_t* rgb = &image.rgb[size_t(to) * size_t(header.width) * 3];
    for (int64_t x = 0; x < header.width; ++x, rgb += 3) std::memcpy(rgb, colours[*index++], 3);
  }
  return {};
}

}  // namespace

bool is_bmp(ByteSpan bytes) {
  return bytes.size() >= kFileHeader + 4 && bytes[0] == 'B' && bytes[1] == 'M' &&
         is_header_size(little_endian(bytes, kFileHeader, 4));
}

Result<StoredSize> bmp_size(ByteSpan bytes, const Limits& limits) {
  VALORA_TRY(header, read_header(bytes, limits));
  return StoredSize{header.width, header.height};
}

Result<StoredImage> decode_bmp(ByteSpan bytes, const Limits& limits) {
  VALORA_TRY(header, read_header(bytes, limits));
  StoredImage stored{blank_image(header.width, header.height)};
  const bool runs = header.coding == BmpCoding::kRuns8 || header.coding == BmpCoding::kRuns4;
  VALORA_CHECK(runs ? unpack_runs(header, bytes, stored.image)
                    : unpack_plain(header, bytes, stored.image));
  return stored;
}

}  // namespace valora::media
