// Elementwise and row-wise kernels. T is float or bf16; they compute in fp32 and round once when
// storing. Tensors are contiguous unless a row stride (ld…, in elements) is given. Arguments are
// not checked.
#pragma once

#include <cstdint>

#include "base/threads/parallel.h"
#include "kernels/logits.h"
#include "kernels/types/bf16.h"
#include "kernels/types/forms.h"

namespace valora::kernels {

// y[t] = x[t] / sqrt(mean(x[t]²) + eps) · (weight + offset). x, residual, y: [rows, width]; weight:
// [width]. If residual is not null, x[t] += residual[t] comes first and is stored in x.
template <typename T>
void rms_norm(T* x, const T* residual, const T* weight, float offset, float eps, int64_t rows,
              int64_t width, T* y, const ParallelFor& parallel);

// y[i] = x[i] · sigmoid(1.702 · x[i])
template <typename T>
void quick_gelu(const T* x, int64_t count, T* y, const ParallelFor& parallel);

// y = T(x): rounds the fp32 results of a product. x: [rows, width], contiguous; y: row stride ldy.
// Runs on the calling thread.
template <typename T>
void round_rows(const float* x, int64_t rows, int64_t width, T* y, int64_t ldy);
// y[t, i] = T(activation(gate[t, i]) · up[t, i]), with the shapes of round_rows.
template <typename T>
void gate_rows(Gate activation, const float* gate, const float* up, int64_t rows, int64_t width,
               T* y, int64_t ldy);

// The first maximum of x[0, n), n >= 1, and whether all values are numbers below infinity.
Argmax argmax(const float* x, int64_t n);

// Sets to -infinity those values of x[0, n) whose bit in `allowed` is 0. The bit of x[i] is bit i %
// 32 of allowed[i / 32].
void keep_allowed(float* x, int64_t n, const uint32_t* allowed);

// Rotary embedding in place, GPT-NeoX order: rotates the two halves of each head.
// x: [rows, heads, dim] with a row stride of ldx and a head stride of ldh elements; cos, sin:
// [rows, dim / 2] contiguous.
template <typename T>
void rotate_half(T* x, int64_t rows, int64_t ldx, int64_t heads, int64_t ldh, int64_t dim,
                 const float* cos, const float* sin, const ParallelFor& parallel);

// Weighted sums of rows: what the chosen experts of a token contribute to its output. y[t] = T(Σ
// weights[t, i] · x[rows[t, i]]) in fp32, over i from 0 to count - 1. x: rows of `width` values;
// rows, weights: [tokens, count]; y: [tokens, width]; all contiguous. T is float or bf16.
template <typename T>
void weighted_rows(const T* x, const int64_t* rows, const float* weights, int64_t tokens,
                   int64_t count, int64_t width, T* y, const ParallelFor& parallel);

}  // namespace valora::kernels
