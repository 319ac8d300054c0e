#include "text/normalizers/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/unicode.h"
#include "text/unicode_tables.h"

namespace valora::text {
namespace {

using CodePoints = std::vector<utf8proc_int32_t>;

// One before the first Hangul trailing consonant: utf8proc takes it for one and drops it.
constexpr char32_t kBeforeTrailingConsonants = 0x11A7;

// A character that never changes and never joins with others.
bool stands_alone(char32_t c) {
  if (c == kBeforeTrailingConsonants) return true;
  const auto ranges = unknown_to_normalizer();
  const auto range = std::ranges::lower_bound(ranges, c, {}, &CodePointRange::last);
  return range != ranges.end() && range->first <= c;
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(CodePoints& out, char32_t c) {
  utf8proc_int32_t parts[8];  // canonical decompositions have at most four
  int boundclass = UTF8PROC_BOUNDCLASS_START;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, std::size(parts),
                                             UTF8PROC_DECOMPOSE, &boundclass);
  out.insert(out.end(), parts, parts + std::clamp<utf8proc_ssize_t>(count, 0, std::size(parts)));
}

// utf8proc's own ordering moves a mark step by step, which takes quadratic time on long runs of marks.
void order_marks(CodePoints& text) {
  for (auto it = text.begin(); it != text.end();) {
    const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
    const auto run = std::find_if_not(it, text.end(), is_starter);
    const auto run_end = std::find_if(run, text.end(), is_starter);
    std::stable_sort(run, run_end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    it = run_end;
  }
}

void append_composed(std::string& out, CodePoints& text) {
  if (text.empty()) return;
  order_marks(text);
  const auto length = utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()),
                                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(out, static_cast<char32_t>(text[i]));
  text.clear();
}

// Below U+0300, whose lead byte is 0xCC, nothing combines or changes places.
bool may_change(std::string_view utf8) {
  return std::ranges::any_of(utf8, [](char c) { return static_cast<uint8_t>(c) >= 0xCC; });
}

}  // namespace

std::string Nfc::normalize(std::string_view utf8) const {
  if (!may_change(utf8)) return std::string(utf8);
  std::string out;
  out.reserve(utf8.size());
  CodePoints segment;
  while (!utf8.empty()) {
    const Utf8Step step = decode_utf8(utf8);
    if (stands_alone(step.code_point)) {
      append_composed(out, segment);
      out += utf8.substr(0, step.length);
    } else {
      append_decomposed(segment, step.code_point);
    }
    utf8.remove_prefix(step.length);
  }
  append_composed(out, segment);
  return out;
}

}  // namespace valora::text
