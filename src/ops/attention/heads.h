// The memory layout of a token's heads.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// True if the heads of each token of x, [T, heads, dim], are contiguous, as the kernels require.
// The stride between tokens is arbitrary.
inline bool has_contiguous_heads(const at::Tensor& x) {
  return x.dim() == 3 && x.stride(2) == 1 && (x.size(1) == 1 || x.stride(1) == x.size(2));
}

}  // namespace valora::ops
