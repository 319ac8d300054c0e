#include "jinja/syntax/number_literal.h"

#include <charconv>
#include <cstdlib>

#include "base/text/strings.h"

namespace valora::jinja {
namespace {

bool is_hex(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

// Digits separated by single underscores at most. Moves `at` past the last one.
std::string digits(std::string_view source, size_t& at, bool (*wanted)(char)) {
  std::string out;
  while (at < source.size()) {
    if (wanted(source[at]))
      out += source[at++];
    else if (source[at] == '_' && !out.empty() && at + 1 < source.size() && wanted(source[at + 1]))
      ++at;
    else
      break;
  }
  return out;
}

bool exponent(std::string_view source, size_t& at, std::string& text) {
  size_t end = at;
  if (end >= source.size() || (source[end] | 0x20) != 'e') return false;
  std::string sign;
  if (++end < source.size() && (source[end] == '+' || source[end] == '-')) sign = source[end++];
  const std::string power = digits(source, end, is_digit);
  if (power.empty()) return false;
  text += "e" + sign + power;
  at = end;
  return true;
}

Result<NumberLiteral> prefixed_integer(std::string_view source, char radix, int line) {
  size_t at = 2;
  if (source[at] == '_') ++at;
  const std::string text = digits(source, at, is_hex);
  Token token{TokenKind::kInteger, line};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token.integer,
                                            radix == 'x'   ? 16
                                            : radix == 'o' ? 8
                                                           : 2);
  if (error != std::errc() || end != text.data() + text.size())
    return syntax_error(line, "an integer is malformed");
  return NumberLiteral{std::move(token), at};
}

}  // namespace

Result<NumberLiteral> scan_number(std::string_view source, bool after_dot, int line) {
  if (source[0] == '0' && source.size() > 2) {
    const char radix = static_cast<char>(source[1] | 0x20);
    if (radix == 'x' || radix == 'o' || radix == 'b') return prefixed_integer(source, radix, line);
  }
  size_t at = 0;
  std::string text = digits(source, at, is_digit);
  bool is_float = false;
  if (!after_dot && at + 1 < source.size() && source[at] == '.' && is_digit(source[at + 1])) {
    is_float = true;
    text += '.';
    text += digits(source, ++at, is_digit);
  }
  if (!after_dot) is_float = exponent(source, at, text) || is_float;
  Token token{is_float ? TokenKind::kFloat : TokenKind::kInteger, line};
  if (is_float) {
    token.number = std::strtod(text.c_str(), nullptr);
  } else {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string::npos)
      return syntax_error(line, "a number begins with 0");
    if (std::from_chars(text.data(), text.data() + text.size(), token.integer).ec != std::errc())
      return syntax_error(
          line, "the integer " + shortened(text, 40) + " is too large (64 bits are supported)");
  }
  return NumberLiteral{std::move(token), at};
}

}  // namespace valora::jinja
