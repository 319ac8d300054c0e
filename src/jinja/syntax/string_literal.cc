#include "jinja/syntax/string_literal.h"

#include <charconv>

#include "base/text/unicode.h"

namespace valora::jinja {
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
