#include "jinja/syntax/lexer.h"

#include <array>
#include <optional>

#include "base/text/strings.h"
#include "jinja/syntax/literals.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Normalises line ends to \n and removes the last one.
std::string normal_lines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normal_lines(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) VALORA_CHECK(next_part());
    push(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  void advance(size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) line_ += source_[at_ + i] == '\n';
    at_ += bytes;
  }

  void skip_space() { advance(rest().size() - strip(rest(), Side::kLeft).size()); }

  bool skip(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    advance(expected.size());
    return true;
  }

  void push(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, line_, std::move(text)});
  }

  // Adds the literal text before a tag; `sign` determines how its end is stripped.
  void push_text(std::string_view text, char sign, bool is_output) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = strip(text, Side::kRight);
    } else if (sign != '+' && !is_output) {
      const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line_begin > 0 || line_starting_) && strip(text.substr(line_begin), Side::kLeft).empty())
        kept = text.substr(0, line_begin);
    }
    if (!kept.empty()) push(TokenKind::kText, std::string(kept));
    advance(text.size());
  }

  size_t find_tag() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() &&
          (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#'))
        return i;
    return std::string::npos;
  }

  char take_sign() {
    const char sign = rest().empty() ? '\0' : rest()[0];
    if (sign != '-' && sign != '+') return '\0';
    advance(1);
    return sign;
  }

  // Reads text up to and including the next tag.
  Status next_part() {
    const size_t tag = find_tag();
    if (tag == std::string::npos) {
      push(TokenKind::kText, std::string(rest()));
      at_ = source_.size();
      return {};
    }
    const char type = source_[tag + 1];
    const char sign =
        tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+')
            ? source_[tag + 2]
            : '\0';
    push_text(rest().substr(0, tag - at_), sign, type == '{');
    advance(2);
    take_sign();
    line_starting_ = false;
    if (type == '#') return comment();
    if (type == '%' && raw_begin()) return raw();
    push(type == '{' ? TokenKind::kOutputBegin : TokenKind::kTagBegin);
    return expression_tokens(type == '{');
  }

  Status comment() {
    const size_t begin = at_;
    const size_t end = source_.find("#}", begin);
    if (end == std::string::npos) return syntax_error(line_, "a comment is not closed");
    const char sign = end > begin ? source_[end - 1] : '\0';
    advance(end + 2 - begin);
    after_tag(sign, /*trims=*/true);
    return {};
  }

  // Strips the text that follows a closing tag.
  void after_tag(char sign, bool trims) {
    const size_t begin = at_;
    if (sign == '-')
      skip_space();
    else if (sign != '+' && trims)
      skip("\n");
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  // Returns true if `word` and the tag's end come next; then skips them and the white space that
  // the end strips.
  bool tag_word(std::string_view word, bool trims) {
    const size_t at = at_;
    const int line = line_;
    skip_space();
    if (skip(word)) {
      skip_space();
      const char sign = rest().starts_with("-%}")            ? '-'
                        : trims && rest().starts_with("+%}") ? '+'
                                                             : '\0';
      if (sign) advance(1);
      if (skip("%}")) {
        after_tag(sign, trims);
        return true;
      }
    }
    at_ = at;
    line_ = line;
    return false;
  }

  bool raw_begin() { return tag_word("raw", /*trims=*/false); }

  Status raw() {
    const size_t begin = at_;
    const int line = line_;
    const bool line_starting = line_starting_;
    for (size_t tag = source_.find("{%", begin); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      at_ = tag + 2;
      const char sign = take_sign();
      if (!tag_word("endraw", /*trims=*/true)) continue;
      const size_t end = at_;
      const bool after = std::exchange(line_starting_, line_starting);
      at_ = begin;
      line_ = line;
      push_text(rest().substr(0, tag - begin), sign, /*is_output=*/false);
      advance(end - at_);
      line_starting_ = after;
      return {};
    }
    return syntax_error(line, "a raw block is not closed");
  }

  // A tag can only end outside brackets.
  bool end_of_tag(bool is_output) {
    if (!open_.empty()) return false;
    const std::string_view close = is_output ? "}}" : "%}";
    char sign = '\0';
    if (rest().size() > 2 && rest().substr(1, 2) == close &&
        (rest()[0] == '-' || (rest()[0] == '+' && !is_output)))
      sign = rest()[0];
    if (!sign && !rest().starts_with(close)) return false;
    push(is_output ? TokenKind::kOutputEnd : TokenKind::kTagEnd);
    advance(sign ? 3 : 2);
    after_tag(sign, !is_output);
    return true;
  }

  Status expression_tokens(bool is_output) {
    while (at_ < source_.size()) {
      if (end_of_tag(is_output)) return {};
      VALORA_CHECK(expression_token());
    }
    return syntax_error(line_, "a tag is not closed");
  }

  Status expression_token() {
    const char c = rest()[0];
    if (is_space(decode_utf8(rest()).code_point)) {
      skip_space();
      return {};
    }
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
      push(TokenKind::kName, source_.substr(at_, end - at_));
      advance(end - at_);
      return {};
    }
    if (c == '\'' || c == '"') return string(c);
    return operator_token();
  }

  Status string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return syntax_error(line_, "a string is not closed");
    auto text = unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    if (!text.ok()) return syntax_error(line_, text.error().message);
    push(TokenKind::kString, std::move(*text));
    advance(end + 1 - at_);
    return {};
  }

  Status operator_token() {
    for (const std::string_view op : kOperators) {
      if (!rest().starts_with(op)) continue;
      if (op == "(" || op == "[" || op == "{") {
        open_ += op == "(" ? ')' : op == "[" ? ']' : '}';
      } else if (op == ")" || op == "]" || op == "}") {
        if (open_.empty()) return syntax_error(line_, "unexpected '" + std::string(op) + "'");
        if (open_.back() != op[0])
          return syntax_error(
              line_, "unexpected '" + std::string(op) + "', expected '" + open_.back() + "'");
        open_.pop_back();
      }
      push(TokenKind::kOperator, std::string(op));
      advance(op.size());
      return {};
    }
    return syntax_error(line_, "unexpected character '" +
                                   std::string(rest().substr(0, decode_utf8(rest()).length)) + "'");
  }

  Status number() {
    VALORA_TRY(literal, scan_number(rest(), at_ > 0 && source_[at_ - 1] == '.', line_));
    tokens_.push_back(std::move(literal.token));
    advance(literal.length);
    return {};
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string open_;  // the closing brackets still expected
  std::vector<Token> tokens_;
};

}  // namespace

Error syntax_error(int line, const std::string& message) {
  return unprocessable("line " + std::to_string(line) + ": " + message);
}

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace valora::jinja
