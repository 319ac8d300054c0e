// UTF-8 of tokens, which may be parts of characters.
#pragma once

#include <string>
#include <string_view>

namespace valora::server {

// Each maximal ill-formed run becomes one U+FFFD.
std::string with_replacements(std::string_view bytes);
// Code points of valid UTF-8.
size_t count_characters(std::string_view text);

}  // namespace valora::server
