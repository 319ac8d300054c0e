#include "server/openai/utf8.h"

#include <cstdint>

namespace valora::server {
namespace {

struct Scalar {
  size_t bytes;  // of the character, or of the ill-formed sequence
  bool valid;
};

// Unicode Standard, Table 3-7, Well-Formed UTF-8 Byte Sequences: only the second byte's range
// varies.
Scalar next_scalar(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    const bool fits =
        i < text.size() && at(i) >= (i == 1 ? low : 0x80) && at(i) <= (i == 1 ? high : 0xBF);
    if (!fits) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::string with_replacements(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Scalar scalar = next_scalar(bytes);
    if (scalar.valid)
      out += bytes.substr(0, scalar.bytes);
    else
      out += "\xEF\xBF\xBD";
    bytes.remove_prefix(scalar.bytes);
  }
  return out;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace valora::server
