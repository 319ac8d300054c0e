// The attention of one tile (query_tile.h) over 8-bit keys and values.
#pragma once

#include <vector>

#include "kernels/cpu/attention/byte_layout.h"
#include "kernels/cpu/attention/query_tile.h"

namespace valora::kernels {

// One head of each block of kPanelOutputs tokens. `heads` ends with kAheadBlocks extra entries,
// which this thread reads next.
struct ByteBlocks {
  std::vector<const uint8_t*> heads;
  KvFormat format = KvFormat::kInt8;
};

// With few rows, bytes are decoded in registers; otherwise once for all rows. Key scales multiply
// the scores and value scales the weights, in fp32. For bf16, the weights are then rounded as with
// plain caches; with few rows over kInt8, queries and weights may instead be rounded to 15 bits of
// the largest in their row.
template <typename T>
void attend(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial);

}  // namespace valora::kernels
