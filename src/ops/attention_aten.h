// Attention on ATen: the reference on CPUs, and what other devices run.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "kernels/cpu/attention/kv_layout.h"

namespace valora::ops {

// As ops::paged_attention; layer: [blocks, 2 (K, V), tokens, kv_heads, dim].
at::Tensor paged_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const at::Tensor& layer, std::span<const kernels::QuerySpan> spans);
// As ops::block_attention.
at::Tensor block_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                std::span<const int64_t> ends);

}  // namespace valora::ops
