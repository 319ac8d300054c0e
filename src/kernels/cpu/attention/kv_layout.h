// How keys and values lie in a KV block on CPUs: as panels (panels.h), so that the products that
// score keys and sum values read the cache as it is. A block holds as many tokens as a panel has
// outputs.
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/query_span.h"

namespace valora::kernels {

static_assert(kBlockTokens == kPanelOutputs);

// Of one layer's keys, and of its values, in a block. Keys of a head: one panel, n = tokens, k =
// dim. Values: panels_of(dim) panels, n = dim, k = tokens.
template <typename T>
constexpr int64_t key_elements(int64_t dim) {
  return panel_elements<T>(dim);
}
template <typename T>
constexpr int64_t value_elements(int64_t dim) {
  return packed_elements<T>(dim, kBlockTokens);
}
template <typename T>
constexpr int64_t kv_elements(int64_t kv_heads, int64_t dim) {
  return kv_heads * (key_elements<T>(dim) + value_elements<T>(dim));
}

// One layer of the block arena: block b at data + b * block_stride, head after head, each its keys
// and then its values: a head is read in one piece, and what the CPU fetches beyond it is the next
// head's.
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

// One head's key and value of a token into its slot of a block. Writing slots in ascending order
// leaves nothing that a product over the written slots would read unwritten.
template <typename T>
void store_token(const T* key, const T* value, int64_t dim, int64_t slot, T* keys, T* values);

// Copies the new tokens' k and v, [kv_heads * dim] a row (ldk and ldv elements apart), into their
// blocks.
template <typename T>
void store_kv(const T* k, int64_t ldk, const T* v, int64_t ldv, std::span<const QuerySpan> spans,
              const KvLayer<T>& layer, const ParallelFor& parallel);

}  // namespace valora::kernels
