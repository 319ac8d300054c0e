// The attention of one tile, computed by one thread: a run of query tokens of one sequence, the
// query heads of one KV head, and a range of keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/product/panels.h"
#include "kernels/types/query_span.h"

namespace valora::kernels {

inline constexpr int64_t kTileRows = 96;  // query rows per pass over the keys

// Blocks of keys that are prefetched ahead.
inline constexpr int64_t kAheadBlocks = 16;

// Keys and values of one head: one pointer per block of kPanelOutputs tokens. `keys` has
// kAheadBlocks further pointers at its end, to the blocks that this thread reads next. They are
// prefetched.
template <typename T>
struct KeyBlocks {
  std::vector<const T*> keys, values;
};

template <typename T>
struct QueryTile {
  const T* q = nullptr;  // [tokens, group, dim] with a token stride of ldq elements
  int64_t ldq = 0;
  int64_t tokens = 0;
  int64_t group = 1;
  int64_t dim = 0;
  float scale = 1;
  int64_t visible = 0;    // keys visible to the first token, counted from the sequence's start
  bool causal = true;     // each later token sees one key more; false: all see the same keys
  int64_t key_begin = 0;  // a multiple of kPanelOutputs
  int64_t key_end = 0;
  int64_t window = 0;  // of the visible keys, only the last ones are attended to; 0: all
  std::span<const PositionRange> joint = {};  // QuerySpan's

  int64_t rows() const { return tokens * group; }
  int64_t width() const { return panels_of(dim) * kPanelOutputs; }
  // The keys that a row attends to.
  PositionRange visible_to(int64_t row) const {
    return visible_from(visible + (causal ? row / group : 0) - 1, window, joint);
  }
};

// The state of a tile's rows after the keys processed so far: the weighted sums of values, not yet
// divided by the sum of the weights.
struct PartialAttention {
  float* sums = nullptr;     // [rows, width]
  float* row_max = nullptr;  // [rows], maximum of scale · score; weights are relative to it
  float* row_sum = nullptr;  // [rows], sum of the weights
};

// Floats that a PartialAttention of this tile needs, and the PartialAttention in such a buffer.
template <typename T>
int64_t partial_floats(const QueryTile<T>& tile) {
  return tile.rows() * (tile.width() + 2);
}
template <typename T>
PartialAttention partial_in(float* memory, const QueryTile<T>& tile) {
  return {memory, memory + tile.rows() * tile.width(), memory + tile.rows() * (tile.width() + 1)};
}

// Computes the tile over keys [key_begin, key_end) into `partial`. blocks.keys[i] and
// blocks.values[i] hold the tokens from key_begin + i * kPanelOutputs on.
template <typename T>
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const PartialAttention& partial);
// Merges `other`, the same tile over another range of keys, into `partial`.
template <typename T>
void add_partial(const QueryTile<T>& tile, const PartialAttention& other,
                 const PartialAttention& partial);
// Divides by row_sum and rounds to T. o: [tokens, group, dim] with a token stride of ldo elements.
template <typename T>
void write_normalized(const QueryTile<T>& tile, const PartialAttention& partial, T* o, int64_t ldo);

}  // namespace valora::kernels
