#include "base/text/visible_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/unicode.h"

namespace valora {
namespace {

bool is_hidden(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  if (c == 0x61C || c == 0x200E || c == 0x200F || c == 0xFEFF) return true;
  return (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

struct CodePoints {
  char32_t first, last;
};
constexpr CodePoints kInvisible[] = {
    {0xAD, 0xAD},       {0x34F, 0x34F},    {0x61C, 0x61C},   {0x115F, 0x1160}, {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x200B, 0x200F},  {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},  {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

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

bool has_invisible_characters(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (step.status == Utf8Status::kValid &&
        std::ranges::any_of(kInvisible, [&](const CodePoints& range) {
          return step.code_point >= range.first && step.code_point <= range.last;
        }))
      return true;
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
