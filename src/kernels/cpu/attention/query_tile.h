// The attention of one tile, computed by one thread: consecutive query tokens of one sequence, the
// query heads of one KV head, and a range of keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/product/panels.h"
#include "kernels/types/spans.h"

namespace valora::kernels {

inline constexpr int64_t kTileRows = 96;  // query rows per pass over the keys

// How many blocks of keys are prefetched ahead.
inline constexpr int64_t kAheadBlocks = 16;

// Keys and values of one head, one pointer per block of kPanelOutputs tokens. `keys` ends with
// kAheadBlocks extra pointers to the blocks that this thread reads next, for prefetching.
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
  int64_t visible = 0;    // keys visible to the first token, counted from the start of the sequence
  bool causal = true;     // each later token sees one more key; false: all see the same keys
  int64_t key_begin = 0;  // a multiple of kPanelOutputs
  int64_t key_end = 0;
  int64_t window = 0;  // attend only to this many of the last visible keys; 0: to all
  std::span<const PositionRange> joint = {};  // as in QuerySpan

  int64_t rows() const { return tokens * group; }
  int64_t width() const { return panels_of(dim) * kPanelOutputs; }
  // The keys that a row attends to.
  PositionRange visible_to(int64_t row) const {
    return visible_from(visible + (causal ? row / group : 0) - 1, window, joint);
  }
};

// The state of a tile's rows after the keys processed so far: weighted sums of values, not yet
// divided by the sums of the weights.
struct PartialAttention {
  float* sums = nullptr;     // [rows, width]
  float* row_max = nullptr;  // [rows], maximum of scale · score; weights are relative to it
  float* row_sum = nullptr;  // [rows], sum of the weights
};

// partial_floats(): the floats that a PartialAttention of this tile needs. partial_in(): the
// PartialAttention in such a buffer.
template <typename T>
int64_t partial_floats(const QueryTile<T>& tile) {
  return tile.rows() * (tile.width() + 2);
}
template <typename T>
PartialAttention partial_in(float* memory, const QueryTile<T>& tile) {
  return {memory, memory + tile.rows() * tile.width(), memory + tile.rows() * (tile.width() + 1)};
}

// Computes the tile over keys [key_begin, key_end) into `partial`. blocks.keys[i] and
// blocks.values[i] hold the tokens starting at key_begin + i * kPanelOutputs.
template <typename T>
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const PartialAttention& partial);
// Merges `other`, the same tile over other keys, into `partial`.
template <typename T>
void add_partial(const QueryTile<T>& tile, const PartialAttention& other,
                 const PartialAttention& partial);
// Divides by row_sum and rounds to T. o: [tokens, group, dim] with a token stride of ldo elements.
template <typename T>
void write_normalized(const QueryTile<T>& tile, const PartialAttention& partial, T* o, int64_t ldo);

}  // namespace valora::kernels
