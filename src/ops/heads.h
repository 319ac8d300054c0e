// The memory layout of a token's heads.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// x: [T, heads, dim]. Whether the heads of each token are contiguous, as the kernels require. The
// token stride is arbitrary.
inline bool heads_side_by_side(const at::Tensor& x) {
  return x.dim() == 3 && x.stride(2) == 1 && (x.size(1) == 1 || x.stride(1) == x.size(2));
}

}  // namespace valora::ops
