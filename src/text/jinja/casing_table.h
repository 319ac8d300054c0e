// Characters whose upper or title case is several characters, ascending.
#pragma once

#include <array>
#include <string_view>

namespace valora::text::jinja {

struct LongCase {
  char32_t code_point;
  std::string_view text;
};
extern const std::array<LongCase, 102> kLongUpper;
extern const std::array<LongCase, 48> kLongTitle;

}  // namespace valora::text::jinja
