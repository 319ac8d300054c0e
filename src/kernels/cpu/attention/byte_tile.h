// The attention of one tile (query_tile.h) over 8-bit keys and values.
#pragma once

#include <cstdint>
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

// With few rows, bytes are multiplied as they are or decoded in registers; otherwise they are
// decoded once for all rows. Key scales multiply the scores and value scales the weights, in fp32.
// For bf16, the weights are then rounded as with plain caches. Few rows of bf16 over kInt8 may be
// rounded instead (RowCode in byte_attention.h): queries to 8 or 15 bits of the largest in their
// row, weights to 15 or 16.
template <typename T>
void attend(const QueryTile<T>& tile, const ByteBlocks& blocks, const PartialAttention& partial);

// attend() of byte_tile.h for few rows.
template <typename T>
void attend_in_registers(const QueryTile<T>& tile, const ByteBlocks& blocks,
                         const PartialAttention& partial);

// Memory that a thread keeps between calls.
template <typename V>
void reserve(std::vector<V>& memory, int64_t size) {
  if (std::ssize(memory) < size) memory.resize(static_cast<size_t>(size));
}

}  // namespace valora::kernels
