// The keys that a query must attend to, for tests of attention; written as a plain mask.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/types/spans.h"

namespace valora::kernels::testing_support {

// True if the query at `position` attends to `key`.
inline bool attends(int64_t position, int64_t key, int64_t window,
                    std::span<const PositionRange> joint) {
  const auto holds_both = [&](const PositionRange& range) {
    return std::min(key, position) >= range.begin && std::max(key, position) < range.end;
  };
  return (window == 0 || key > position - window) &&
         (key <= position || std::ranges::any_of(joint, holds_both));
}

// The contiguous keys, out of `length`, around its own to which the query at `position` attends.
inline PositionRange attended(int64_t position, int64_t length, int64_t window,
                              std::span<const PositionRange> joint) {
  PositionRange range{position, position + 1};
  while (range.begin > 0 && attends(position, range.begin - 1, window, joint)) --range.begin;
  while (range.end < length && attends(position, range.end, window, joint)) ++range.end;
  return range;
}

}  // namespace valora::kernels::testing_support
