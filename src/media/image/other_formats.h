// Formats that are recognised only to be named in an error.
#pragma once

#include <string>

#include "media/image/decoders.h"

namespace valora::media {

// "JPEG XL", "a PDF document"; empty for unknown data.
std::string other_format(ByteSpan bytes);

// The brands of an ISO base media file ("heic", "avif", "isom"), the major one first; empty for
// other data.
std::vector<std::string_view> file_brands(ByteSpan bytes);

}  // namespace valora::media
