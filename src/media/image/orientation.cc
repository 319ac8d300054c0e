#include "media/image/orientation.h"

#include <cstring>

namespace valora::media {
namespace {

constexpr uint16_t kOrientationTag = 0x0112;

// Reads integers from a TIFF block in its byte order. The caller checks bounds.
class TiffBlock {
 public:
  TiffBlock(std::span<const uint8_t> bytes, bool little_endian)
      : bytes_(bytes), little_endian_(little_endian) {}
  bool has(size_t offset, size_t count) const {
    return offset <= bytes_.size() && bytes_.size() - offset >= count;
  }
  uint32_t read(size_t offset, int count) const {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i)
      value = value << 8 | bytes_[offset + (little_endian_ ? count - 1 - i : i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_endian_;
};

// Size in bytes of an integer of this TIFF type; 0 for types that cannot hold an orientation.
int integer_size(uint32_t type) {
  switch (type) {
    case 1:
    case 6: return 1;
    case 3:
    case 8: return 2;
    case 4:
    case 9: return 4;
    default: return 0;
  }
}

}  // namespace

std::optional<int> exif_orientation(std::span<const uint8_t> exif) {
  constexpr char kMarker[] = "Exif\0";  // six bytes with the terminator
  while (exif.size() >= sizeof kMarker && std::memcmp(exif.data(), kMarker, sizeof kMarker) == 0)
    exif = exif.subspan(sizeof kMarker);
  if (exif.size() < 8) return {};
  const bool little = exif[0] == 'I' && exif[1] == 'I';
  if (!little && !(exif[0] == 'M' && exif[1] == 'M')) return {};
  const TiffBlock block(exif, little);
  if (block.read(2, 2) != 42) return {};

  const size_t directory = block.read(4, 4);
  if (!block.has(directory, 2)) return {};
  const size_t entries = block.read(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * 12;
    if (!block.has(entry, 12)) return {};
    const int size = integer_size(block.read(entry + 2, 2));
    if (block.read(entry, 2) == kOrientationTag && size != 0 && block.read(entry + 4, 4) == 1)
      return static_cast<int>(block.read(entry + 8, size));
  }
  return {};
}

std::optional<int> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    if (rest.starts_with("=\""))
      rest.remove_prefix(2);
    else if (rest.starts_with(">"))
      rest.remove_prefix(1);
    else
      continue;
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return {};
}

int orientation_of(std::span<const uint8_t> exif, std::string_view xmp) {
  if (const auto found = exif_orientation(exif)) return *found;
  return xmp_orientation(xmp).value_or(1);
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const ptrdiff_t w = image.width, h = image.height;
  // Output pixel (x, y) is read from start + x * x_step + y * y_step, in pixels.
  ptrdiff_t start = 0, x_step = 0, y_step = 0;
  switch (orientation) {
    case 2: start = w - 1, x_step = -1, y_step = w; break;
    case 3: start = w * h - 1, x_step = -1, y_step = -w; break;
    case 4: start = w * (h - 1), x_step = 1, y_step = -w; break;
    case 5: start = 0, x_step = w, y_step = 1; break;
    case 6: start = w * (h - 1), x_step = -w, y_step = 1; break;
    case 7: start = w * h - 1, x_step = -w, y_step = -1; break;
    case 8: start = w - 1, x_step = w, y_step = -1; break;
  }
  const bool swapped = swaps_sides(orientation);
  Image out{swapped ? image.height : image.width, swapped ? image.width : image.height, {}};
  out.rgb.resize(image.rgb.size());
  uint8_t* to = out.rgb.data();
  for (ptrdiff_t y = 0; y < out.height; ++y) {
    for (ptrdiff_t x = 0; x < out.width; ++x, to += 3) {
      const uint8_t* from = image.rgb.data() + (start + x * x_step + y * y_step) * 3;
      to[0] = from[0], to[1] = from[1], to[2] = from[2];
    }
  }
  return out;
}

}  // namespace valora::media
