// Attention over the paged KV cache, and the vision towers' bidirectional attention.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/paged_attention.h"

namespace valora::ops {

using kernels::QuerySpan;

// The device's block arena: [blocks, layers, 2 (K, V), block_tokens, kv_heads, dim].
class KvArena {
 public:
  KvArena() = default;
  KvArena(int64_t blocks, int64_t layers, int64_t block_tokens, int64_t kv_heads, int64_t dim, at::ScalarType dtype,
          at::Device device);
  static int64_t block_bytes(int64_t layers, int64_t block_tokens, int64_t kv_heads, int64_t dim, at::ScalarType dtype);

  const at::Tensor& data() const { return data_; }
  at::Tensor layer(int64_t index) const { return data_.select(1, index); }  // [blocks, 2, block_tokens, kv_heads, dim]

 private:
  at::Tensor data_;
};

// Writes the step's k, v: [T, kv_heads, dim] into the blocks of `layer` (KvArena::layer), then attends
// q: [T, heads, dim] causally within each span. → [T, heads * dim]. Scale 1/sqrt(dim).
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& layer,
                           std::span<const QuerySpan> spans);

// q, k, v: [T, heads, dim]; rows attend within [ends[i-1], ends[i]) only, both ways. → [T, heads * dim].
at::Tensor block_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::span<const int64_t> ends);

}  // namespace valora::ops
