// Tells xgrammar which white space JSON may contain.
#pragma once

#include <optional>

#include "base/json/json_spacing.h"

namespace valora::grammar {

// The value for xgrammar's max_whitespace_cnt: either of two values above any that a client may ask
// for, whose meaning cmake/xgrammar.cmake defines; nullopt: any number of characters.
constexpr std::optional<int> whitespace_of(JsonSpacing spacing) {
  switch (spacing) {
    case JsonSpacing::kBounded: return 1000001;
    case JsonSpacing::kCompact: return 1000002;
    case JsonSpacing::kFree: break;
  }
  return {};
}

}  // namespace valora::grammar
