// Linears that each take some rows of one tensor, e.g. the experts of a mixture with the rows that
// chose them, in one launch. Differentiable as ops/linear/linear.h. Invalid arguments throw
// c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "ops/linear/linear.h"

namespace valora::ops {

// Rows [begin, end) and their linears. lora: segments within these rows.
struct LinearGroup {
  int64_t begin = 0, end = 0;
  ModuleWeight linear, up;  // up: of gated products only
  const LoraBatch* lora = nullptr;
};

// groups: adjacent, from row 0 to the last row of x: [rows, in], as in project(). Linears have
// equal sizes. → linear(x), [rows, out]
at::Tensor grouped_linear(const at::Tensor& x, std::span<const LinearGroup> groups);
// The same in float, for partial sums. largest: float [rows, 1], as in linear_float().
at::Tensor grouped_linear_float(const at::Tensor& x, std::span<const LinearGroup> groups,
                                const at::Tensor& largest = {});
// → activation(linear(x)) · up(x), [rows, out]
at::Tensor grouped_gated(const at::Tensor& x, std::span<const LinearGroup> groups, Gate activation);

// x: [n, width], contiguous; rows: int64 [T, count], of x, in host memory; weights: float [T,
// count]. → Σ weights[t, i] · x[rows[t, i]] in fp32, rounded to x's dtype, [T, width]
at::Tensor weighted_rows(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& weights);

}  // namespace valora::ops
