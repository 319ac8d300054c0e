// The sequences of a flat batch over the paged KV cache, for the attention kernels of all devices.
#pragma once

#include <cstdint>

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
};

// The first position that a query attends to in a layer with a window: the last `window` positions
// up to its own, or all of them if window is 0.
constexpr int64_t first_visible(int64_t position, int64_t window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

}  // namespace valora::kernels
