// UTF-8 and the character properties that tokenizers and templates need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace valora {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Status : uint8_t { kValid, kInvalid, kIncomplete };

// One decoding step. kInvalid covers the longest prefix of a valid character (at least one byte),
// which is replaced by one U+FFFD. kIncomplete reaches the end of the bytes.
struct Utf8Step {
  Utf8Status status;
  uint8_t length;       // bytes
  char32_t code_point;  // if valid
};
Utf8Step decode_utf8(std::string_view bytes);  // bytes must not be empty

void append_utf8(std::string& out, char32_t code_point);
bool is_valid_utf8(std::string_view bytes);
// Replaces every invalid step by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

std::string_view general_category(char32_t code_point);  // "Lu", "Nd", …; "Cn" if unassigned
bool is_white_space(char32_t code_point);                // the property White_Space
// Leading: the length in bytes. Trailing: the offset at which the white space begins, at least
// `from`.
size_t leading_white_space(std::string_view utf8);
size_t trailing_white_space(std::string_view utf8, size_t from);
char32_t to_lower(char32_t code_point);  // unchanged if the lower case has several characters
bool is_numeric(char32_t code_point);    // Nd, Nl, No
bool is_word(char32_t code_point);       // \w in Unicode regular expressions (UTS 18)

}  // namespace valora
