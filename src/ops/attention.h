// Causal attention over the paged KV cache. All scores are scaled by 1/sqrt(dim). Invalid arguments
// throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/types/query_span.h"
#include "kernels/types/weight_form.h"
#include "ops/span_tables.h"

namespace valora::ops {

using kernels::QuerySpan;
using kernels::WeightForm;

// The block arena of a device. A block holds K and V of kBlockTokens tokens in all layers. Layout
// on CPUs: [blocks, layers, elements] in the panels of kernels/cpu/attention/kv_layout.h. On other
// devices and with the reference backend: [blocks, layers, 2 (K, V), tokens, kv_heads, dim]. Blocks
// may be further apart than their size.
class KvArena {
 public:
  static constexpr int64_t kBlockTokens = kernels::kBlockTokens;

  KvArena() = default;
  KvArena(int64_t blocks, int64_t layers, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
          at::Device device);
  // In memory that other data shares (ops/pool_memory.h): block i begins at element i * stride of
  // the pool. pool: [elements], contiguous, of the dtype and device of the cache. stride: at least
  // block_bytes() / the size of an element. The pool's values do not matter. Throws c10::Error if
  // the pool or the stride is another.
  KvArena(const at::Tensor& pool, int64_t stride, int64_t layers, int64_t kv_heads, int64_t dim);
  // Bytes per block in the layout of this device and the backend in use.
  static int64_t block_bytes(int64_t layers, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
                             at::Device device);

  const at::Tensor& data() const { return data_; }
  WeightForm form() const { return form_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t dim() const { return dim_; }

 private:
  at::Tensor data_;
  WeightForm form_ = WeightForm::kPlain;
  int64_t kv_heads_ = 0, dim_ = 0;
};

// Writes k and v of the step, [T, kv_heads, dim], into the blocks of `layer`. Then computes causal
// attention of q, [T, heads, dim], over each span's cached and new keys. window: how many positions
// a query attends to, the last ones up to its own; 0: all up to its own. On GPUs, the kernels take
// no window that is shorter than a sequence. tables: of these spans, kept from layer to layer;
// null: made for this call. → [T, heads * dim]
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans,
                           int64_t window = 0, SpanTables* tables = nullptr);

// Causal attention without a cache, for training: each span attends only to its own tokens (context
// 0, no blocks). Differentiable.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            std::span<const QuerySpan> spans, int64_t window = 0);

}  // namespace valora::ops
