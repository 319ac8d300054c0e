// UTF-8 helpers for token bytes, which may hold incomplete characters.
#pragma once

#include <string>
#include <string_view>

namespace valora::server {

// Replaces each maximal ill-formed subsequence with one U+FFFD.
std::string with_replacements(std::string_view bytes);
// Number of code points; `text` must be valid UTF-8.
size_t count_characters(std::string_view text);

}  // namespace valora::server
