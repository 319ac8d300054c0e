// The alphabet of byte-level BPE: one printable character, U+0021 to U+0143, per byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace valora::text {

std::string_view byte_to_text(uint8_t byte);  // the byte's character, in UTF-8
std::optional<uint8_t> byte_of_character(
    char32_t code_point);  // nullopt for characters outside the alphabet

}  // namespace valora::text
