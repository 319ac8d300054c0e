// The implementations of ops/attention.h. The caller has checked the arguments.
#pragma once

#include "ops/attention.h"

namespace valora::ops {

at::Tensor paged_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const KvArena& arena, int64_t layer,
                               std::span<const QuerySpan> spans);
at::Tensor block_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               std::span<const int64_t> ends);
// Elements per layer of a KV block in panels.
int64_t kv_layer_elements_cpu(int64_t kv_heads, int64_t dim, at::ScalarType dtype);

at::Tensor paged_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans);
// Differentiable.
at::Tensor block_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                std::span<const int64_t> ends);

}  // namespace valora::ops
