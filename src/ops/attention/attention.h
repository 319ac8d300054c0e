// Attention over the paged KV cache: causal except in the joint ranges of spans. Invalid arguments
// throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/types/forms.h"
#include "kernels/types/spans.h"
#include "ops/device/pool_memory.h"
#include "ops/elementwise/elementwise.h"
#include "ops/step/span_tables.h"

namespace valora::ops {

using kernels::AttentionRule;
using kernels::KvFormat;
using kernels::QuerySpan;
using kernels::WeightForm;

// The shape of a cache. dtype: of the activations, and of the cache if the format is kPlain.
struct KvShape {
  int64_t layers = 0, kv_heads = 0, dim = 0;
  at::ScalarType dtype = at::kFloat;
  KvFormat format = KvFormat::kPlain;
};

// True if the device and the current backend support this format for activations of this dtype.
bool serves_kv_format(KvFormat format, at::ScalarType dtype, at::Device device);

// The block arena of a device. A block holds K and V of kBlockTokens tokens in all layers. Layout
// on CPUs: [blocks, layers, elements] in the panels of kernels/cpu/attention/kv_layout.h, or bytes
// as byte_layout.h has them. On other devices and with the reference backend: [blocks, layers, 2
// (K, V), tokens, kv_heads, dim]; bytes: [blocks, layers, bytes] as kernels/cuda/attention.h has
// them. Blocks may be further apart than their size.
class KvArena {
 public:
  static constexpr int64_t kBlockTokens = kernels::kBlockTokens;

  KvArena() = default;
  // Throws c10::Error if the format is not supported.
  KvArena(int64_t blocks, const KvShape& shape, at::Device device);
  // Uses the blocks of a pool, whatever they contain. Throws c10::Error if they are smaller than
  // block_bytes() or the format is not supported.
  KvArena(const PoolMemory& pool, const KvShape& shape, at::Device device);
  // Bytes per block in the layout for this device and the current backend.
  static int64_t block_bytes(const KvShape& shape, at::Device device);

  // In the cache's dtype, or bytes for 8-bit formats.
  const at::Tensor& data() const { return data_; }
  WeightForm form() const { return form_; }
  KvFormat format() const { return shape_.format; }
  int64_t kv_heads() const { return shape_.kv_heads; }
  int64_t dim() const { return shape_.dim; }
  at::ScalarType dtype() const { return shape_.dtype; }

 private:
  void name_sizes();

  at::Tensor data_;
  WeightForm form_ = WeightForm::kPlain;
  KvShape shape_;
};

// Writes the step's k and v, [T, kv_heads, dim], into the blocks of `layer`, then computes the
// attention of q, [T, heads, dim], over each span's cached and new keys. tables: for these spans,
// reused from layer to layer; null: built for this call. → [T, heads * dim]
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans,
                           const AttentionRule& rule = {}, SpanTables* tables = nullptr);

// rotate_half() on q and k by as many angles, then paged_attention(), in fewer launches on GPUs. q
// and k are unspecified afterwards.
at::Tensor rotated_paged_attention(at::Tensor q, at::Tensor k, const at::Tensor& v,
                                   const RotaryAngles& of_queries, const RotaryAngles& of_keys,
                                   const KvArena& arena, int64_t layer,
                                   std::span<const QuerySpan> spans, const AttentionRule& rule = {},
                                   SpanTables* tables = nullptr);

// Without a cache, for training: each span attends only to its own tokens (context 0, no blocks).
// Differentiable.
at::Tensor sequence_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              std::span<const QuerySpan> spans, const AttentionRule& rule = {});

}  // namespace valora::ops
