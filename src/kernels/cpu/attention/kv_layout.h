// The layout of a KV block on CPUs: keys and values are stored as panels (product/panels.h), so
// that score and value products read the cache without repacking. A block holds as many tokens as a
// panel has outputs.
#pragma once

#include <cstdint>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/spans.h"

namespace valora::kernels {

static_assert(kBlockTokens == kPanelOutputs);

// Elements of one head's keys in a block: one panel with n = tokens and k = dim.
template <typename T>
constexpr int64_t key_elements(int64_t dim) {
  return panel_elements<T>(dim);
}
// Elements of one head's values in a block: panels_of(dim) panels with n = dim and k = tokens.
template <typename T>
constexpr int64_t value_elements(int64_t dim) {
  return packed_elements<T>(dim, kBlockTokens);
}
// Elements of one layer in a block.
template <typename T>
constexpr int64_t kv_elements(int64_t kv_heads, int64_t dim) {
  return kv_heads * (key_elements<T>(dim) + value_elements<T>(dim));
}

// One layer of the block arena. Block b begins at data + b * block_stride (elements). The order
// within a block is [head][keys, values], so that a head is one contiguous read and the hardware
// prefetcher runs on into the next head.
template <typename T>
struct KvLayer {
  T* data = nullptr;
  int64_t block_stride = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;

  T* keys(int64_t block, int64_t head) const {
    return data + block * block_stride + kv_elements<T>(head, dim);
  }
  T* values(int64_t block, int64_t head) const { return keys(block, head) + key_elements<T>(dim); }
};

// Writes one token's key and value of one head, [dim] each, into a slot of a block. `keys` and
// `values` point to the head's panels. If slots are written in ascending order, products over the
// written slots read no uninitialised elements.
template <typename T>
void store_token(const T* key, const T* value, int64_t dim, int64_t slot, T* keys, T* values);

// Copies k and v of the new tokens into their blocks. k, v: [tokens, kv_heads * dim], with row
// strides ldk and ldv in elements.
template <typename T>
void store_kv(const T* k, int64_t ldk, const T* v, int64_t ldv, std::span<const QuerySpan> spans,
              const KvLayer<T>& layer, const ParallelFor& parallel);

}  // namespace valora::kernels
