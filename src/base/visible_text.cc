#include "base/visible_text.h"

#include <fmt/format.h>

#include "base/unicode.h"

namespace valora {
namespace {

bool is_hidden(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  if (c == 0x61C || c == 0x200E || c == 0x200F || c == 0xFEFF) return true;
  return (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

std::string escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  const auto code = static_cast<uint32_t>(c);
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{{{:x}}}", code);
}

}  // namespace

bool has_hidden_characters(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (step.status != Utf8Status::kValid || is_hidden(step.code_point)) return true;
    text.remove_prefix(step.length);
  }
  return false;
}

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const std::string_view bytes = text.substr(0, step.length);
    if (step.status != Utf8Status::kValid)
      for (const char byte : bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    else if (is_hidden(step.code_point) && step.code_point != '\t')
      out += escape(step.code_point);
    else
      out += bytes;
    text.remove_prefix(step.length);
  }
  return out;
}

}  // namespace valora
