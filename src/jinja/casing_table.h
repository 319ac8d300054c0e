// What Python's strings know of characters beyond simple case and general category. All ascending.
#pragma once

#include <array>
#include <string_view>

#include "base/unicode_tables.h"

namespace valora::jinja {

// Whose upper or title case is several characters.
struct LongCase {
  char32_t code_point;
  std::string_view text;
};
extern const std::array<LongCase, 102> kLongUpper;
extern const std::array<LongCase, 48> kLongTitle;

// Upper, lower, digits and numbers to Python, and not by their category.
extern const std::array<CodePointRange, 5> kOtherUpper;
extern const std::array<CodePointRange, 24> kOtherLower;
extern const std::array<CodePointRange, 20> kOtherDigit;
extern const std::array<CodePointRange, 72> kOtherNumeric;

}  // namespace valora::jinja
