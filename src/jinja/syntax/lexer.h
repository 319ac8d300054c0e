// Converts template source to tokens and applies white-space control: trim_blocks and lstrip_blocks
// are on, as in transformers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::jinja {

enum class TokenKind : uint8_t {
  kText,
  kOutputBegin,
  kOutputEnd,
  kTagBegin,
  kTagEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  // Literal text, a name, an operator, or a string without quotes and escapes.
  std::string text{};
  int64_t integer = 0;
  double number = 0;
};

// An error in the template's source, found when it is loaded.
Error syntax_error(int line, const std::string& message);
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace valora::jinja
