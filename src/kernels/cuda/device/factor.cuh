// Access to rows of factors that may be in several pieces.
#pragma once

#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {

// Row n of a factor [.., k].
template <typename T>
__device__ const T* factor_row(const DeviceLoraFactor& factor, int n, int k) {
  if (factor.pieces == nullptr)
    return static_cast<const T*>(factor.data) + static_cast<int64_t>(n) * k;
  const int piece = n / factor.rows_per_piece;
  return static_cast<const T*>(factor.pieces[piece]) +
         static_cast<int64_t>(n - piece * factor.rows_per_piece) * k;
}

}  // namespace valora::kernels::cuda
