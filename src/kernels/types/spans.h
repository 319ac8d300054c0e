// The sequences of a flat batch, for the kernels of all devices: their tokens over the paged KV
// cache, and the state that some layers have besides it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/position_range.h"

namespace valora::kernels {

// The sequences of a flat batch over the paged KV cache, for the attention kernels of all devices.

// Tokens per KV block.
inline constexpr int64_t kBlockTokens = 16;

// One sequence of the flat batch: query rows [begin, begin + queries) are at positions context …
// context + queries - 1 of the sequence.
struct QuerySpan {
  int64_t begin = 0;
  int64_t queries = 0;
  int64_t context = 0;              // tokens whose KV is in the cache before this step
  const int32_t* blocks = nullptr;  // block table, [ceil((context + queries) / kBlockTokens)]
  // Ascending ranges of positions that attend to one another in both directions, such as the tokens
  // of a picture. A range that contains a query must end at or before context + queries.
  std::span<const PositionRange> joint = {};
};

// The first position visible to a query in a layer with a window: it sees the last `window`
// positions up to its own, or all of them if window is 0.
constexpr int64_t first_visible(int64_t position, int64_t window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

// The positions that a query attends to: up to its own, or to the end of the joint range that
// contains it, but none before the window. Both bounds are non-decreasing in `position`.
inline PositionRange visible_from(int64_t position, int64_t window,
                                  std::span<const PositionRange> joint) {
  PositionRange visible{first_visible(position, window), position + 1};
  const auto range = std::ranges::upper_bound(joint, position, {}, &PositionRange::end);
  if (range != joint.end() && range->begin <= position) visible.end = range->end;
  return visible;
}

// What a step reads and writes of one sequence's state. Each list has as many pool blocks as a
// state takes (state_layout.h). A step writes `to` and `kept`, which nothing else reads before the
// step has ended.
struct StateSpan {
  static constexpr int kMostKept = 2;
  struct Kept {
    const int32_t* blocks = nullptr;  // null: none
    int64_t after = 0;                // tokens of the step that the state includes
  };

  const int32_t* from = nullptr;          // state before the step; null: there is none
  const int32_t* to = nullptr;            // state after the step's last token; may equal `from`
  std::array<Kept, kMostKept> kept = {};  // ascending
};

}  // namespace valora::kernels
