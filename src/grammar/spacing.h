// How xgrammar is told which white space JSON may have.
#pragma once

#include <optional>

#include "base/json_spacing.h"

namespace valora::grammar {

// For its max_whitespace_cnt: one of the two values beyond any that a client may ask for, to which
// cmake/xgrammar.cmake gives a meaning; none: any number of characters.
constexpr std::optional<int> whitespace_of(JsonSpacing spacing) {
  switch (spacing) {
    case JsonSpacing::kBounded: return 1000001;
    case JsonSpacing::kCompact: return 1000002;
    case JsonSpacing::kFree: break;
  }
  return {};
}

}  // namespace valora::grammar
