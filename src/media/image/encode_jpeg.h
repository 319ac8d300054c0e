// Writes pictures as JPEG.
#pragma once

#include <string>

#include "media/image/image.h"

namespace valora::media {

// quality: 1 … 100, as libjpeg's. 4:2:0 below 90, else without subsampling. kInvalidArgument for a
// picture without pixels or with a side above 65,500.
Result<std::string> encode_jpeg(const Image& image, int quality);

}  // namespace valora::media
