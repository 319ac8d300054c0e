// Random images to send, a different one for every seed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "bench/serve/load.h"

namespace valora::bench {

// Returns "data:image/jpeg;base64,…" or a PNG: coloured squares with noise, which compress about as
// well as photographs.
Result<std::string> random_image_url(const ImageLoad& image, uint64_t seed);

}  // namespace valora::bench
