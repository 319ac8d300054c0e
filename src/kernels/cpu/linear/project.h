// The projections of a step: up to three linears that share their input, with the low-rank products
// of every adapter in the batch, in one parallel launch (VaLoRA §4.3, S-LoRA §5). fp32
// inside, rounded once.
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/lora.h"

namespace valora::kernels {

inline constexpr int kMaxSlices = 3;

// One of the linears: y = x · wᵀ + bias. T is float or bf16.
template <typename T>
struct Slice {
  Panels<T> w;                  // [n, k]
  const float* bias = nullptr;  // [n], or none
  T* y = nullptr;               // [m, n], rows ldy elements apart
  float* y_float = nullptr;     // in the place of y: the result unrounded
  int64_t ldy = 0;
  int module = -1;  // in the tables of the segments' adapters; -1: none adapts it
};

enum class Combine : uint8_t {
  kNone,
  kSiluMul,  // two slices of equal n: y of the first = silu(first) · second; the second's y is not
             // written
};

// x: [m, k], rows ldx elements apart. Each token's rank-wide intermediate, times its coefficient,
// is rounded to T.
template <typename T>
void project(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment> segments, Combine combine, const ParallelFor& parallel);

}  // namespace valora::kernels
