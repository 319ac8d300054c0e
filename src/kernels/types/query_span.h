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

}  // namespace valora::kernels
