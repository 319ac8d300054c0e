// Helpers for strings from external sources.
#pragma once

#include <string>
#include <string_view>

namespace valora {

// For error messages: UTF-8 text truncated to `max_bytes` at a character boundary.
inline std::string shortened(std::string_view text, size_t max_bytes = 200) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
  return std::string(text.substr(0, max_bytes)) + "…";
}

// Converts only ASCII letters.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace valora
