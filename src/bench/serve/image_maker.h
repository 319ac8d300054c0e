// Pictures to send: every seed another one.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "bench/serve/load.h"

namespace valora::bench {

// "data:image/jpeg;base64,…": coloured squares with noise, so that it compresses about as a
// photograph does.
Result<std::string> random_image_url(const ImageLoad& image, uint64_t seed);

}  // namespace valora::bench
