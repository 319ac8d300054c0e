// The orientation of a picture: EXIF's tag, or XMP's if EXIF has none.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "media/image.h"

namespace valora::media {

// From a TIFF block as in EXIF, with or without "Exif\0\0" before it; none if there is no readable
// tag.
std::optional<int> exif_orientation(std::span<const uint8_t> exif);
std::optional<int> xmp_orientation(std::string_view xmp);
// EXIF's, otherwise XMP's, otherwise 1.
int orientation_of(std::span<const uint8_t> exif, std::string_view xmp);

// True if applying the orientation swaps width and height.
inline bool swaps_sides(int orientation) { return orientation >= 5 && orientation <= 8; }
// The picture with the orientation applied. Values outside 2 to 8 change nothing.
Image upright(Image image, int orientation);

}  // namespace valora::media
