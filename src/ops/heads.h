// How a token's heads lie in memory.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// x: [T, heads, dim]: whether a token's heads lie side by side, as the kernels read them. Tokens
// may lie apart.
inline bool heads_side_by_side(const at::Tensor& x) {
  return x.dim() == 3 && x.stride(2) == 1 && (x.size(1) == 1 || x.stride(1) == x.size(2));
}

}  // namespace valora::ops
