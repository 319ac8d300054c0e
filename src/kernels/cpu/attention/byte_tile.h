// The attention of one tile (query_tile.h) over keys and values in 8 bits.
#pragma once

#include <vector>

#include "kernels/cpu/attention/byte_layout.h"
#include "kernels/cpu/attention/query_tile.h"

namespace valora::kernels {

// One head of each block of kPanelOutputs tokens. `heads` has kAheadBlocks further ones at its end,
// which this thread reads next.
struct ByteBlocks {
  std::vector<const uint8_t*> heads;
  KvFormat format = KvFormat::kInt8;
};

// With few rows the bytes are decoded in registers, otherwise once for all rows. A key's scale
// multiplies its scores, and a value's scale its weights, in fp32. In bf16 the weights are then
// rounded as those of plain caches are. With few rows of bf16 over kInt8, queries and weights may
// be rounded to 15 bits of their row's largest instead.
template <typename T>
void attend(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial);

}  // namespace valora::kernels
