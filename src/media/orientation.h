// Which way up a picture is: EXIF's orientation tag, and XMP's where EXIF has none.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "media/image.h"

namespace valora::media {

// Of a TIFF block as EXIF carries it, with or without the "Exif\0\0" before it; none if there is no
// readable tag.
std::optional<int> exif_orientation(std::span<const uint8_t> exif);
std::optional<int> xmp_orientation(std::string_view xmp);
// EXIF first, then XMP, else 1.
int orientation_of(std::span<const uint8_t> exif, std::string_view xmp);

// Whether turning upright makes the width the height.
inline bool swaps_sides(int orientation) { return orientation >= 5 && orientation <= 8; }
// The picture as it should be seen; an orientation outside 2 to 8 changes nothing.
Image upright(Image image, int orientation);

}  // namespace valora::media
