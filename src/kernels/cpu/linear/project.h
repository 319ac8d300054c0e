// Up to three linears with the same input (e.g. q, k, v), plus the low-rank products of all
// adapters in the batch, in one parallel launch (VaLoRA §4.3, S-LoRA §5). Sums are in fp32 and
// rounded to T once. Arguments are not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/product/integer_panels.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/gate.h"
#include "kernels/types/lora.h"

namespace valora::kernels {

inline constexpr int kMaxSlices = 3;

// One linear: y = x · wᵀ + bias. T is float or bf16.
template <typename T>
struct Slice {
  Panels<T> w;                  // [n, k]; without data if `integers` is set
  const float* bias = nullptr;  // [n], or null
  T* y = nullptr;               // [m, n] with a row stride of ldy elements
  float* y_float = nullptr;     // if set, receives the unrounded result instead of y
  int64_t ldy = 0;
  int module = -1;  // index in the module tables of the segments; -1: not adapted
  const IntegerPanels* integers = nullptr;  // the weights as integers, [n, k]
};

// x: [m, k] with a row stride of ldx elements. The rank-wide intermediate of a token, multiplied by
// its coefficient and scale, is rounded to T. inputs: what the weights multiply, if that is not x;
// it has x's shape and stride, and adapters take x. gate: of two slices of equal n, the first y =
// gate(first) · second; the second y is not written.
template <typename T>
void project(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment> segments, std::optional<Gate> gate,
             const ParallelFor& parallel, const T* inputs = nullptr);

}  // namespace valora::kernels
