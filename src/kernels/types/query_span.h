// Sequences of a flat batch over the paged KV cache, as every device's attention kernels take them.
#pragma once

#include <cstdint>

namespace valora::kernels {

// Tokens of a KV block.
inline constexpr int64_t kBlockTokens = 16;

// One sequence's part of the flat batch: query rows [begin, begin + queries) stand at positions
// context … context + queries - 1 of the sequence.
struct QuerySpan {
  int64_t begin = 0;
  int64_t queries = 0;
  int64_t context = 0;              // tokens whose KV was there before this step
  const int32_t* blocks = nullptr;  // its block table
};

}  // namespace valora::kernels
