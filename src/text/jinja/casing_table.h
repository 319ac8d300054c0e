// What Python's strings know of characters beyond simple case and general category. All ascending.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace valora::text::jinja {

// Whose upper or title case is several characters.
struct LongCase {
  char32_t code_point;
  std::string_view text;
};
extern const std::array<LongCase, 102> kLongUpper;
extern const std::array<LongCase, 48> kLongTitle;

struct CodePointRange {
  char32_t first, last;
};
// Upper, lower, digits and numbers to Python, and not by their category.
extern const std::array<CodePointRange, 5> kOtherUpper;
extern const std::array<CodePointRange, 24> kOtherLower;
extern const std::array<CodePointRange, 20> kOtherDigit;
extern const std::array<CodePointRange, 72> kOtherNumeric;

inline bool in_ranges(std::span<const CodePointRange> ranges, char32_t c) {
  const auto it = std::ranges::lower_bound(ranges, c, {}, &CodePointRange::last);
  return it != ranges.end() && it->first <= c;
}

}  // namespace valora::text::jinja
