// UTF-8 and the character properties that tokenizing needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace valora {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Status : uint8_t { kValid, kInvalid, kIncomplete };

// One step through UTF-8. An invalid step covers the longest prefix of a character that could have
// been valid (at least one byte), the unit that becomes one U+FFFD; an incomplete one reaches the
// end of the bytes.
struct Utf8Step {
  Utf8Status status;
  uint8_t length;       // bytes
  char32_t code_point;  // of a valid step
};
Utf8Step decode_utf8(std::string_view bytes);  // bytes must not be empty

void append_utf8(std::string& out, char32_t code_point);
bool is_valid_utf8(std::string_view bytes);
// Every invalid step replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

std::string_view general_category(char32_t code_point);  // "Lu", "Nd", …; "Cn" where unassigned
bool is_white_space(char32_t code_point);                // the property White_Space
// Bytes of the white space at the text's beginning; and where that at its end begins, no further
// back than `from`.
size_t leading_white_space(std::string_view utf8);
size_t trailing_white_space(std::string_view utf8, size_t from);
char32_t to_lower(char32_t code_point);  // where its lower case is one character
bool is_numeric(char32_t code_point);    // Nd, Nl, No
bool is_word(char32_t code_point);       // \w of Unicode's regular expressions (UTS 18)

}  // namespace valora
