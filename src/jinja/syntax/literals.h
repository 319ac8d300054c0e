// The values of number and string literals.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "jinja/syntax/lexer.h"

namespace valora::jinja {

// Number literals: integers with and without a radix, and floats.
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct NumberLiteral {
  Token token;
  size_t length;  // in bytes
};
// The literal at the start of `source`, which begins with a digit. After a dot, as in "x.0.1", it
// is always an integer.
Result<NumberLiteral> scan_number(std::string_view source, bool after_dot, int line);

// Resolves the escapes of a string literal.
Result<std::string> unescape(std::string_view rest);

}  // namespace valora::jinja
