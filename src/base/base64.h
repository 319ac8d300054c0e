// Base64 in the standard alphabet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora {

// White space, and missing padding at the end, are accepted; everything else is an error.
Result<std::vector<uint8_t>> decode_base64(std::string_view text);
// With padding, without white space.
std::string encode_base64(std::string_view bytes);

}  // namespace valora
