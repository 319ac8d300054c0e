#include "base/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/text/unicode_tables.h"

namespace valora {
namespace {

struct LeadByte {
  uint8_t length = 0;  // 0: not a lead byte
  // Bounds of the second byte. They exclude overlong forms, surrogates and code points above
  // U+10FFFF.
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

LeadByte lead_byte(uint8_t b) {
  if (b < 0x80) return {1};
  if (b < 0xC2) return {0};
  if (b < 0xE0) return {2};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// Symbols with the property Other_Alphabetic: circled and squared letters count as word characters.
bool is_alphabetic_symbol(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

Utf8Step decode_utf8(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const LeadByte lead = lead_byte(at(0));
  if (lead.length == 0) return {Utf8Status::kInvalid, 1, 0};
  if (lead.length == 1) return {Utf8Status::kValid, 1, at(0)};
  char32_t c = at(0) & (0x7F >> lead.length);
  for (uint8_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Status::kIncomplete, i, 0};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {Utf8Status::kInvalid, i, 0};
    c = (c << 6) | (at(i) & 0x3F);
  }
  return {Utf8Status::kValid, lead.length, c};
}

void append_utf8(std::string& out, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Step step = decode_utf8(bytes);
    if (step.status != Utf8Status::kValid) return false;
    bytes.remove_prefix(step.length);
  }
  return true;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = decode_utf8(bytes);
    out += step.status == Utf8Status::kValid ? bytes.substr(0, step.length) : kReplacement;
    bytes.remove_prefix(step.length);
  }
  return out;
}

std::string_view general_category(char32_t code_point) {
  const std::string_view category =
      utf8proc_category_string(static_cast<utf8proc_int32_t>(code_point));
  if (category != "Cn") return category;
  const auto added = added_categories();
  const auto range = std::ranges::lower_bound(added, code_point, {}, &CategoryRange::last);
  return range != added.end() && range->first <= code_point ? range->category : category;
}

bool is_white_space(char32_t c) {
  if (c < 0x1680) return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0;
  return c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

size_t leading_white_space(std::string_view utf8) {
  size_t end = 0;
  while (end < utf8.size()) {
    const Utf8Step step = decode_utf8(utf8.substr(end));
    if (!is_white_space(step.code_point)) break;
    end += step.length;
  }
  return end;
}

size_t trailing_white_space(std::string_view utf8, size_t from) {
  size_t end = utf8.size();
  while (end > from) {
    size_t begin = end - 1;
    while (begin > 0 && (utf8[begin] & 0xC0) == 0x80) --begin;
    if (!is_white_space(decode_utf8(utf8.substr(begin)).code_point)) break;
    end = begin;
  }
  return std::max(end, from);
}

char32_t to_lower(char32_t c) {
  const auto added = added_lower_cases();
  const auto range = std::ranges::lower_bound(added, c, {}, &LowerCaseRange::last);
  if (range != added.end() && range->first <= c) return c + range->offset;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_numeric(char32_t code_point) { return general_category(code_point)[0] == 'N'; }

bool is_word(char32_t code_point) {
  const std::string_view category = general_category(code_point);
  return category[0] == 'L' || category[0] == 'M' || category == "Nd" || category == "Nl" ||
         category == "Pc" || code_point == 0x200C || code_point == 0x200D ||
         is_alphabetic_symbol(code_point);
}

}  // namespace valora
