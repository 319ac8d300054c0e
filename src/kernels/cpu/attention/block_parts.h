// The new tokens of a step, divided at the boundaries of KV blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/types/spans.h"

namespace valora::kernels {

// Consecutive new tokens of one span within one block. One thread writes all of them, because
// adjacent tokens share words of memory.
struct BlockPart {
  const QuerySpan* span;
  int64_t first, last;  // positions in the sequence

  int64_t block() const { return span->blocks[first / kBlockTokens]; }
  // The batch row of a position.
  int64_t row(int64_t position) const { return span->begin + position - span->context; }
};

inline std::vector<BlockPart> parts_of(std::span<const QuerySpan> spans) {
  std::vector<BlockPart> parts;
  for (const QuerySpan& span : spans) {
    const int64_t end = span.context + span.queries;
    for (int64_t first = span.context; first < end;) {
      const int64_t last = std::min(end, (first / kBlockTokens + 1) * kBlockTokens);
      parts.push_back({&span, first, last});
      first = last;
    }
  }
  return parts;
}

// The number of parts worth one thread, if a token has `elements` elements.
inline int64_t parts_grain(int64_t elements) {
  return std::max<int64_t>(1, 32768 / (elements * kBlockTokens));
}

}  // namespace valora::kernels
