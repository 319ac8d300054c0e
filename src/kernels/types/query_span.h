// The sequences of a flat batch over the paged KV cache, for the attention kernels of all devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/position_range.h"

namespace valora::kernels {

// Tokens per KV block.
inline constexpr int64_t kBlockTokens = 16;

// One sequence of the flat batch: query rows [begin, begin + queries) have the positions
// context … context + queries - 1 in the sequence.
struct QuerySpan {
  int64_t begin = 0;
  int64_t queries = 0;
  int64_t context = 0;              // tokens whose KV is in the cache before this step
  const int32_t* blocks = nullptr;  // block table, [ceil((context + queries) / kBlockTokens)]
  // Ascending ranges whose positions attend to one another in both directions: the tokens of a
  // picture. One that holds a query ends at context + queries or before.
  std::span<const PositionRange> joint = {};
};

// The first position that a query attends to in a layer with a window: the last `window` positions
// up to its own, or all of them if window is 0.
constexpr int64_t first_visible(int64_t position, int64_t window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

// The positions that a query attends to: those up to its own, or to the end of the joint range that
// it is in, and of them none before a window. Neither bound falls as positions rise.
inline PositionRange visible_from(int64_t position, int64_t window,
                                  std::span<const PositionRange> joint) {
  PositionRange visible{first_visible(position, window), position + 1};
  const auto range = std::ranges::upper_bound(joint, position, {}, &PositionRange::end);
  if (range != joint.end() && range->begin <= position) visible.end = range->end;
  return visible;
}

}  // namespace valora::kernels
