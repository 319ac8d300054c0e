// One tile of attention: some query tokens of one sequence, the query heads of one key head, a
// range of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

inline constexpr int64_t kAheadBlocks = 16;

// Keys and values of one head, a pointer for each block of kPanelOutputs tokens. Behind the keys'
// own come kAheadBlocks pointers to those that this thread reads next, which are fetched meanwhile.
template <typename T>
struct KeyBlocks {
  std::vector<const T*> keys, values;
};

template <typename T>
struct QueryTile {
  const T* q = nullptr;  // [tokens, group, dim], tokens ldq elements apart
  int64_t ldq = 0;
  int64_t tokens = 0;
  int64_t group = 1;
  int64_t dim = 0;
  float scale = 1;
  int64_t visible = 0;    // keys that the first token sees, counted from the sequence's begin
  bool causal = true;     // each further token sees one more; else all see the same
  int64_t key_begin = 0;  // a multiple of kPanelOutputs
  int64_t key_end = 0;

  int64_t rows() const { return tokens * group; }
  int64_t width() const { return panels_of(dim) * kPanelOutputs; }
  int64_t visible_to(int64_t row) const { return visible + (causal ? row / group : 0); }
};

// A tile's rows after the keys attended so far: weighted values, not yet divided by the weights'
// sum.
struct PartialAttention {
  float* sums = nullptr;     // [rows, width]
  float* row_max = nullptr;  // [rows], of the scores times scale; the weights are relative to it
  float* row_sum = nullptr;  // [rows], of the weights
};

// Floats that the PartialAttention of this tile takes.
template <typename T>
int64_t partial_floats(const QueryTile<T>& tile) {
  return tile.rows() * (tile.width() + 2);
}
template <typename T>
PartialAttention partial_in(float* memory, const QueryTile<T>& tile) {
  return {memory, memory + tile.rows() * tile.width(), memory + tile.rows() * (tile.width() + 1)};
}

// Attends to keys [key_begin, key_end); blocks.keys[i] holds those from key_begin + i *
// kPanelOutputs on.
template <typename T>
void attend(const QueryTile<T>& tile, const KeyBlocks<T>& blocks, const PartialAttention& partial);
// Adds `other`, of another range of the same tile's keys, to `partial`.
template <typename T>
void add_partial(const QueryTile<T>& tile, const PartialAttention& other,
                 const PartialAttention& partial);
// Divides by the weights' sums. o: [tokens, group, dim], tokens ldo elements apart.
template <typename T>
void write_normalized(const QueryTile<T>& tile, const PartialAttention& partial, T* o, int64_t ldo);

}  // namespace valora::kernels
