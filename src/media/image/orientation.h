// A picture's orientation: the EXIF tag, or XMP's if there is no EXIF tag.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "media/image/image.h"

namespace valora::media {

// From EXIF's TIFF block, with or without the leading "Exif\0\0"; absent if there is no readable
// tag.
std::optional<int> exif_orientation(std::span<const uint8_t> exif);
std::optional<int> xmp_orientation(std::string_view xmp);
// The EXIF orientation, or else XMP's, or else 1.
int orientation_of(std::span<const uint8_t> exif, std::string_view xmp);

// True if applying the orientation swaps width and height.
inline bool swaps_sides(int orientation) { return orientation >= 5 && orientation <= 8; }
// Applies the orientation. Values outside 2 to 8 change nothing.
Image upright(Image image, int orientation);

}  // namespace valora::media
