// Attention over the paged KV cache: causal, but for the joint ranges of spans. Invalid arguments
// throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/types/kv_format.h"
#include "kernels/types/query_span.h"
#include "kernels/types/weight_form.h"
#include "ops/elementwise.h"
#include "ops/pool_memory.h"
#include "ops/span_tables.h"

namespace valora::ops {

using kernels::KvFormat;
using kernels::QuerySpan;
using kernels::WeightForm;

// What a cache is made of. dtype: of the activations, and of the cache if the format is kPlain.
struct KvShape {
  int64_t layers = 0, kv_heads = 0, dim = 0;
  at::ScalarType dtype = at::kFloat;
  KvFormat format = KvFormat::kPlain;
};

// Whether the device and the backend in use have this format for activations of this dtype.
bool serves_kv_format(KvFormat format, at::ScalarType dtype, at::Device device);

// The block arena of a device. A block holds K and V of kBlockTokens tokens in all layers. Layout
// on CPUs: [blocks, layers, elements] in the panels of kernels/cpu/attention/kv_layout.h, or bytes
// as byte_layout.h has them. On other devices and with the reference backend: [blocks, layers, 2
// (K, V), tokens, kv_heads, dim]. Blocks may be further apart than their size.
class KvArena {
 public:
  static constexpr int64_t kBlockTokens = kernels::kBlockTokens;

  KvArena() = default;
  // Throws c10::Error if the format is not served.
  KvArena(int64_t blocks, const KvShape& shape, at::Device device);
  // In the blocks of a pool, whose values do not matter. Throws c10::Error if they are smaller than
  // block_bytes(), or the format is not served.
  KvArena(const PoolMemory& pool, const KvShape& shape, at::Device device);
  // Bytes per block in the layout of this device and the backend in use.
  static int64_t block_bytes(const KvShape& shape, at::Device device);

  // Of the cache's dtype, or bytes.
  const at::Tensor& data() const { return data_; }
  WeightForm form() const { return form_; }
  KvFormat format() const { return shape_.format; }
  int64_t kv_heads() const { return shape_.kv_heads; }
  int64_t dim() const { return shape_.dim; }
  at::ScalarType dtype() const { return shape_.dtype; }

 private:
  at::Tensor data_;
  WeightForm form_ = WeightForm::kPlain;
  KvShape shape_;
};

// What the attention of a layer is made of.
struct AttentionRule {
  // How many positions a query attends to, the last ones up to its own; 0: all up to its own. Those
  // behind it in its joint range are visible in any case.
  int64_t window = 0;
  double scale = 0;  // of all scores; 0: 1/sqrt(dim)

  double scale_of(int64_t dim) const;
};

// Writes k and v of the step, [T, kv_heads, dim], into the blocks of `layer`. Then computes the
// attention of q, [T, heads, dim], over each span's cached and new keys. On GPUs, the kernels take
// no window that is shorter than a sequence, no scale and no joint ranges. tables: of these spans,
// kept from layer to layer; null: made for this call. → [T, heads * dim]
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans,
                           const AttentionRule& rule = {}, SpanTables* tables = nullptr);

// rotate_half() of q and k, then paged_attention(), in fewer launches on GPUs. The values of q and
// k are of no use afterwards.
at::Tensor rotated_paged_attention(at::Tensor q, at::Tensor k, const at::Tensor& v,
                                   const RotaryAngles& of_queries, const RotaryAngles& of_keys,
                                   const KvArena& arena, int64_t layer,
                                   std::span<const QuerySpan> spans, const AttentionRule& rule = {},
                                   SpanTables* tables = nullptr);

// Without a cache, for training: each span attends only to its own tokens (context 0, no
// blocks). Differentiable.
at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              std::span<const QuerySpan> spans, const AttentionRule& rule = {});

}  // namespace valora::ops
