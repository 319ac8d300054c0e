// Benchmarks the dense linears of a 0.5 B and a 7 B model with cold weights, against at::linear and
// oneDNN with prepacked weights.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> linear_shapes(bool quick);

// silu(x Gᵀ) · (x Uᵀ): our single launch against two linears and two elementwise operations.
std::vector<Shape> gated_shapes(bool quick);

}  // namespace valora::bench
