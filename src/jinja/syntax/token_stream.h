// The token stream consumed by the parsers of statements and expressions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/strings.h"
#include "jinja/syntax/lexer.h"

namespace valora::jinja {

// Quotes a name for error messages.
inline std::string quoted(std::string_view name) { return "'" + shortened(name, 80) + "'"; }

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  Token take() {
    Token token = current();
    skip();
    return token;
  }
  void skip(size_t count = 1) { at_ = std::min(at_ + count, tokens_.size() - 1); }

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_operator(std::string_view op) const {
    return at(TokenKind::kOperator) && current().text == op;
  }
  bool at_name(std::string_view name) const {
    return at(TokenKind::kName) && current().text == name;
  }
  bool skip_operator(std::string_view op) { return at_operator(op) && (skip(), true); }
  bool skip_name(std::string_view name) { return at_name(name) && (skip(), true); }

  Status expect(TokenKind kind, std::string_view what) {
    if (!at(kind)) return unexpected(what);
    skip();
    return {};
  }
  Status expect_operator(std::string_view op) {
    if (!at_operator(op)) return unexpected("'" + std::string(op) + "'");
    skip();
    return {};
  }
  Result<std::string> expect_name(std::string_view what) {
    if (!at(TokenKind::kName)) return unexpected(what);
    return take().text;
  }
  Error unexpected(std::string_view expected) const {
    return syntax_error(line(),
                        "expected " + std::string(expected) + ", found " + describe(current()));
  }
  static std::string describe(const Token& token);

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace valora::jinja
