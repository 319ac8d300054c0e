#include "text/decoders/byte_level.h"

#include "text/byte_map.h"
#include "text/unicode.h"

namespace valora::text {

std::string ByteLevelDecoder::bytes(std::string_view token) const {
  std::string out;
  out.reserve(token.size());
  for (std::string_view rest = token; !rest.empty();) {
    const Utf8Step step = decode_utf8(rest);
    const auto byte = byte_of_character(step.code_point);
    if (!byte) return std::string(token);
    out += static_cast<char>(*byte);
    rest.remove_prefix(step.length);
  }
  return out;
}

}  // namespace valora::text
