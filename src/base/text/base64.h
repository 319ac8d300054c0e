// Base64 in the standard alphabet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora {

// Accepts white space and missing padding; everything else is an error.
Result<std::vector<uint8_t>> decode_base64(std::string_view text);
// The result is padded and has no white space.
std::string encode_base64(std::string_view bytes);

}  // namespace valora
