// Random images to send, a different one for every seed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "lab/serve/load.h"

namespace valora::bench {

// Returns a JPEG ("data:image/jpeg;base64,…") or PNG of coloured squares with noise, which
// compresses about as well as a photograph.
Result<std::string> random_image_url(const ImageLoad& image, uint64_t seed);

}  // namespace valora::bench
