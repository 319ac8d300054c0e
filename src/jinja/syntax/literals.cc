#include "jinja/syntax/literals.h"

#include <charconv>
#include <cstdlib>

#include "base/text/strings.h"
#include "base/text/unicode.h"

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

namespace {

constexpr std::string_view kEscapes = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";

// Reads the digits of \x, \u and \U. None may be missing.
Status append_code(std::string& out, std::string_view& rest, size_t digits) {
  uint32_t code = 0;
  const std::string_view text = rest.substr(0, digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
  if (text.size() != digits || error != std::errc() || end != text.data() + digits)
    return invalid("a \\x, \\u or \\U escape is cut off");
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return invalid("an escape names no character");
  append_utf8(out, code);
  rest.remove_prefix(digits);
  return {};
}

void append_octal(std::string& out, std::string_view& rest) {
  uint32_t code = 0;
  for (int i = 0; i < 3 && !rest.empty() && rest[0] >= '0' && rest[0] <= '7'; ++i) {
    code = code * 8 + static_cast<uint32_t>(rest[0] - '0');
    rest.remove_prefix(1);
  }
  append_utf8(out, code);
}

}  // namespace

Result<std::string> unescape(std::string_view rest) {
  std::string out;
  while (!rest.empty()) {
    const size_t slash = rest.find('\\');
    out += rest.substr(0, slash);
    if (slash == rest.npos) break;
    rest.remove_prefix(slash + 1);
    if (rest.empty()) return invalid("a string ends in a backslash");
    const char c = rest[0];
    if (static_cast<signed char>(c) < 0)
      return invalid("a backslash before a character outside ASCII is not supported");
    if (c == 'N') return invalid("\\N escapes are not supported");
    if (c >= '0' && c <= '7') {
      append_octal(out, rest);
      continue;
    }
    rest.remove_prefix(1);
    if (c == 'x' || c == 'u' || c == 'U') {
      VALORA_CHECK(append_code(out, rest, c == 'x' ? 2 : c == 'u' ? 4 : 8));
      continue;
    }
    if (c == '\n') continue;
    size_t known = 0;
    while (known < kEscapes.size() && kEscapes[known] != c) known += 2;
    if (known < kEscapes.size())
      out += kEscapes[known + 1];
    else
      (out += '\\') += c;
  }
  return out;
}

}  // namespace valora::jinja
