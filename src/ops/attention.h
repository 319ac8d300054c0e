// Attention over the paged KV cache, and the vision towers' bidirectional attention.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/types/query_span.h"
#include "kernels/types/weight_form.h"

namespace valora::ops {

using kernels::QuerySpan;
using kernels::WeightForm;

// The device's block arena: a block holds kBlockTokens tokens of all layers, K and V. On CPUs in
// the panels that the kernels read (kernels/cpu/attention/kv_layout.h), [blocks, layers, elements];
// on other devices and for the reference backend [blocks, layers, 2 (K, V), tokens, kv_heads, dim].
class KvArena {
 public:
  static constexpr int64_t kBlockTokens = kernels::kBlockTokens;

  KvArena() = default;
  KvArena(int64_t blocks, int64_t layers, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
          at::Device device);
  // Of one block in the form that this device and the backend in use would have.
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

// Writes the step's k, v: [T, kv_heads, dim] into the blocks of `layer`, then attends q: [T, heads,
// dim] causally within each span. → [T, heads * dim]. Scale 1/sqrt(dim).
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const KvArena& arena, int64_t layer, std::span<const QuerySpan> spans);

// The same without a cache, for training: each span attends its own tokens alone (context 0, no
// blocks). Differentiates.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            std::span<const QuerySpan> spans);

// q, k, v: [T, heads, dim], heads side by side in a row; rows attend within [ends[i-1], ends[i])
// only, both ways. → [T, heads * dim]. Differentiates.
at::Tensor block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           std::span<const int64_t> ends);

}  // namespace valora::ops
