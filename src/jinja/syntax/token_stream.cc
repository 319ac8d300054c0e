#include "jinja/syntax/token_stream.h"

#include "base/text/strings.h"

namespace valora::jinja {

std::string TokenStream::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd: return "the end of the template";
    case TokenKind::kOutputEnd: return "'}}'";
    case TokenKind::kTagEnd: return "'%}'";
    case TokenKind::kInteger: return std::to_string(token.integer);
    case TokenKind::kFloat: return "a number";
    case TokenKind::kString: return "a string";
    case TokenKind::kText: return "text";
    case TokenKind::kOutputBegin: return "'{{'";
    case TokenKind::kTagBegin: return "'{%'";
    default: return "'" + shortened(token.text, 80) + "'";
  }
}

}  // namespace valora::jinja
