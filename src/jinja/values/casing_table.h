// Python's knowledge of characters beyond simple case mapping and general category. All tables are
// in ascending order.
#pragma once

#include <array>
#include <string_view>

#include "base/text/unicode_tables.h"

namespace valora::jinja {

// A character whose upper or title case is several characters long.
struct LongCase {
  char32_t code_point;
  std::string_view text;
};
extern const std::array<LongCase, 102> kLongUpper;
extern const std::array<LongCase, 48> kLongTitle;

// Characters that Python counts as upper, lower, digit or numeric despite their category.
extern const std::array<CodePointRange, 5> kOtherUpper;
extern const std::array<CodePointRange, 24> kOtherLower;
extern const std::array<CodePointRange, 20> kOtherDigit;
extern const std::array<CodePointRange, 72> kOtherNumeric;

}  // namespace valora::jinja
