// Row-wise kernels between the products; fp32 inside, rounded once on store. T is float or bf16.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "kernels/types/argmax.h"
#include "kernels/types/bf16.h"

namespace valora::kernels {

// y[t] = x[t] / rms(x[t]) · weight. With a residual: x[t] += residual[t] first (x is written).
template <typename T>
void rms_norm(T* x, const T* residual, const T* weight, float eps, int64_t rows, int64_t width,
              T* y, const ParallelFor& parallel);

// y[i] = x[i] · sigmoid(1.702 · x[i])
template <typename T>
void quick_gelu(const T* x, int64_t count, T* y, const ParallelFor& parallel);

// What a product left in fp32, [rows, width] side by side, rounded into y, rows ldy elements apart.
template <typename T>
void round_rows(const float* x, int64_t rows, int64_t width, T* y, int64_t ldy);
// The same of y[t, i] = silu(gate[t, i]) · up[t, i].
template <typename T>
void silu_mul_rows(const float* gate, const float* up, int64_t rows, int64_t width, T* y,
                   int64_t ldy);

// n >= 1
Argmax argmax(const float* x, int64_t n);

// In place on x[t, heads, dim], rows ldx elements apart: halves rotated by cos/sin[t, dim / 2].
template <typename T>
void rotate_half(T* x, int64_t rows, int64_t ldx, int64_t heads, int64_t dim, const float* cos,
                 const float* sin, const ParallelFor& parallel);

}  // namespace valora::kernels
