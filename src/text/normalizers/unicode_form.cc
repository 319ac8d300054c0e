#include "text/normalizers/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/text/unicode.h"
#include "base/text/unicode_tables.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

using CodePoints = std::vector<utf8proc_int32_t>;

// The code point before the first Hangul trailing consonant: utf8proc mistakes it for one and drops
// it.
constexpr char32_t kBeforeTrailingConsonants = 0x11A7;

bool composes(UnicodeForm form) { return form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc; }
bool is_compatible(UnicodeForm form) {
  return form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
}

// True if normalization never changes the character or combines it with another.
bool stands_alone(char32_t c) {
  return c == kBeforeTrailingConsonants || in_ranges(unknown_to_normalizer(), c);
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(CodePoints& out, char32_t c, bool compatible) {
  utf8proc_int32_t parts[32];  // U+FDFA has 18, canonical decompositions at most four
  int boundclass = UTF8PROC_BOUNDCLASS_START;
  const int options = compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, std::size(parts),
                              static_cast<utf8proc_option_t>(options), &boundclass);
  out.insert(out.end(), parts, parts + std::clamp<utf8proc_ssize_t>(count, 0, std::size(parts)));
}

// utf8proc reorders marks by adjacent swaps, which is quadratic for long runs of marks.
void order_marks(CodePoints& text) {
  for (auto it = text.begin(); it != text.end();) {
    const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
    const auto run = std::find_if_not(it, text.end(), is_starter);
    const auto run_end = std::find_if(run, text.end(), is_starter);
    std::stable_sort(run, run_end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    it = run_end;
  }
}

void append_normal(std::string& out, CodePoints& text, bool compose) {
  if (text.empty()) return;
  order_marks(text);
  auto length = static_cast<utf8proc_ssize_t>(text.size());
  if (compose)
    length = utf8proc_normalize_utf32(
        text.data(), length, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(out, static_cast<char32_t>(text[i]));
  text.clear();
}

// ASCII is unchanged in every form. In NFC, nothing below U+0300 (lead byte 0xCC) combines or is
// reordered.
bool may_change(std::string_view utf8, UnicodeForm form) {
  const uint8_t first = form == UnicodeForm::kNfc ? 0xCC : 0x80;
  return std::ranges::any_of(utf8, [&](char c) { return static_cast<uint8_t>(c) >= first; });
}

size_t count_characters(std::string_view utf8) {
  return static_cast<size_t>(
      std::ranges::count_if(utf8, [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t bytes_of_first(std::string_view utf8, size_t characters) {
  size_t end = 0;
  for (; characters > 0 && end < utf8.size(); --characters)
    end += decode_utf8(utf8.substr(end)).length;
  return end;
}

}  // namespace

std::string UnicodeNormalizer::normal_form(std::string_view utf8) const {
  std::string out;
  out.reserve(utf8.size());
  CodePoints segment;
  while (!utf8.empty()) {
    const Utf8Step step = decode_utf8(utf8);
    if (stands_alone(step.code_point)) {
      append_normal(out, segment, composes(form_));
      out += utf8.substr(0, step.length);
    } else {
      append_decomposed(segment, step.code_point, is_compatible(form_));
    }
    utf8.remove_prefix(step.length);
  }
  append_normal(out, segment, composes(form_));
  return out;
}

void UnicodeNormalizer::apply(NormalizedText& text) const {
  if (!may_change(text.text, form_)) return;
  const size_t head_characters =
      count_characters(normal_form(std::string_view(text.text).substr(0, text.head)));
  text.text = normal_form(text.text);
  text.head = bytes_of_first(text.text, head_characters);
}

// U+FDFA becomes 11 times longer; canonical decompositions at most three times.
size_t UnicodeNormalizer::max_growth() const { return is_compatible(form_) ? 11 : 3; }

Result<std::unique_ptr<const Normalizer>> make_unicode_form(const Json& json,
                                                            const std::string& where,
                                                            UnicodeForm form) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const Normalizer>(new UnicodeNormalizer(form));
}

}  // namespace valora::text
