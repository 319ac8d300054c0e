// The causal convolution before the gated delta rule, on some columns of some rows. T is float or
// bf16. Arguments are not checked.
#pragma once

#include <cstdint>

#include "kernels/types/bf16.h"

namespace valora::kernels {

inline constexpr int64_t kMostTaps = 16;

template <typename T>
struct ConvColumns {
  const T* x = nullptr;  // the span's first row, at the first of these columns
  int64_t ldx = 0;
  const T* weights = nullptr;  // [taps, …] at the first column; the last tap applies to the row
  int64_t ldw = 0, taps = 0;   // taps: at most kMostTaps
  const T* const* window = nullptr;  // taps - 1 rows before the span, oldest first; null: zeros
  int64_t place = 0;                 // the first of these columns in the window's rows
  int64_t columns = 0;
};

// y[t] = silu(Σ_j weights[j] · x[t - taps + 1 + j]) for rows [first, first + rows) of the span:
// computed in fp32, rounded once to T, and written as floats. y: [rows, columns], row stride ldy.
void short_conv(const ConvColumns<float>& c, int64_t first, int64_t rows, float* y, int64_t ldy);
void short_conv(const ConvColumns<bf16>& c, int64_t first, int64_t rows, float* y, int64_t ldy);

}  // namespace valora::kernels
