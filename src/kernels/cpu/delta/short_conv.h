// The causal convolution before the gated delta rule, and the window of inputs that a sequence
// keeps between steps. T is float or bf16. Computes in fp32 and rounds once. Arguments are not
// checked.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/types/bf16.h"
#include "kernels/types/state_span.h"

namespace valora::kernels {

// Rows [begin, begin + count) of the batch. A window is taps - 1 rows of `channels` inputs, oldest
// first.
template <typename T>
struct ConvSpan {
  int64_t begin = 0, count = 0;
  const T* const* from = nullptr;  // window before the rows; null: zeros
  T* const* to = nullptr;          // window after the rows; may equal `from`
  struct Kept {
    T* const* to = nullptr;  // null: none
    int64_t after = 0;       // rows of the span that the window includes
  };
  std::array<Kept, StateSpan::kMostKept> kept = {};  // ascending
};

template <typename T>
struct ConvWeights {
  const T* weights = nullptr;  // [taps, channels]; the last tap applies to the row itself
  int64_t taps = 0, channels = 0;
};

// y[t] = silu(Σ_j weights[j] · x[t - taps + 1 + j]), where rows before the span's first come from
// its window. x, y: [T, channels] with row strides ldx, ldy; they must not overlap.
template <typename T>
void short_conv(const T* x, int64_t ldx, const ConvWeights<T>& weights,
                std::span<const ConvSpan<T>> spans, T* y, int64_t ldy, const ParallelFor& parallel);

}  // namespace valora::kernels
