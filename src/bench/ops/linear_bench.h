// Dense linears of a 0.5 B and a 7 B model, weights cold, against at::linear and against oneDNN
// with weights in the form it likes best.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> linear_shapes(bool quick);

// silu(x Gᵀ) · (x Uᵀ), one launch of ours against two linears and two row-wise operations.
std::vector<Shape> gated_shapes(bool quick);

}  // namespace valora::bench
