// Into how many parts the keys of a step's spans are split, so that all multiprocessors have work.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/attention.h"

namespace valora::kernels::cuda {

inline constexpr int64_t kSplitUnit = 64;  // 4 warps with a KV block each
inline constexpr int64_t kBlocksPerProcessor = 2;
// The overhead of a thread block (start, merging warps, partial results), expressed in keys.
inline constexpr int64_t kBlockOverhead = 64;

constexpr int64_t round_up_keys(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

inline constexpr int64_t kMostParts = 64;

// The number of keys per thread block that gives the shortest schedule, assuming waves of equal
// length. parts_of(n): the number of parts of n keys in all spans together. most_parts: of a span.
template <typename PartsOf>
int64_t choose_split(const AttentionShape& shape, const PartsOf& parts_of, int64_t longest,
                     int64_t most_parts = kMostParts) {
  const int64_t slots = kBlocksPerProcessor * std::max(shape.multiprocessors, 1);
  int64_t best = round_up_keys(std::max<int64_t>(longest, 1), kSplitUnit), best_cost = INT64_MAX;
  for (int64_t parts = 1; parts <= most_parts; ++parts) {
    const int64_t keys = round_up_keys((longest + parts - 1) / parts, kSplitUnit);
    if (parts > 1 && keys < 2 * kSplitUnit) break;
    const int64_t blocks = parts_of(keys) * shape.kv_heads;
    // Merging the parts costs about as much as another block.
    const int64_t cost = (blocks + slots - 1) / slots * (keys + kBlockOverhead) +
                         (parts > 1 ? 2 * kBlockOverhead : 0);
    if (cost < best_cost) best_cost = cost, best = keys;
  }
  return best;
}

}  // namespace valora::kernels::cuda
