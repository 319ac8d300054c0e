// Template source to tokens, white space control done: trim_blocks and lstrip_blocks are on, as in
// transformers.
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
  std::string text{};  // literal text, a name, an operator, a string without its quotes and escapes
  int64_t integer = 0;
  double number = 0;
};

// A fault of the template's source, at start.
Error syntax_error(int line, const std::string& message);
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace valora::jinja
