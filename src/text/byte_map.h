// The byte alphabet of byte-level BPE: each of the 256 bytes has one printable character, U+0021 to
// U+0143.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace valora::text {

std::string_view byte_to_text(uint8_t byte);                    // its character in UTF-8
std::optional<uint8_t> byte_of_character(char32_t code_point);  // none outside the alphabet

}  // namespace valora::text
