// Weighted sums of rows: what the chosen experts of a token contribute to its output.
#pragma once

#include <cstdint>

#include "base/threads/parallel.h"
#include "kernels/types/bf16.h"

namespace valora::kernels {

// y[t] = T(Σ weights[t, i] · x[rows[t, i]]) in fp32, over i from 0 to count - 1. x: rows of `width`
// values; rows, weights: [tokens, count]; y: [tokens, width]; all contiguous. T is float or bf16.
template <typename T>
void weighted_rows(const T* x, const int64_t* rows, const float* weights, int64_t tokens,
                   int64_t count, int64_t width, T* y, const ParallelFor& parallel);

}  // namespace valora::kernels
