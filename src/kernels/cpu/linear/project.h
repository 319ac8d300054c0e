// Up to three linears with the same input (e.g. q, k, v), plus the low-rank products of all
// adapters in the batch, in one parallel launch (VaLoRA §4.3, S-LoRA §5). Sums are in fp32 and
// rounded to T once. Arguments are not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/product/integer_panels.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/forms.h"
#include "kernels/types/lora.h"

namespace valora::kernels {

inline constexpr int kMaxSlices = 3;

// One linear: y = x · wᵀ + bias. T is float or bf16.
template <typename T>
struct Slice {
  Panels<T> w;                  // [n, k]; has no data if `integers` is set
  const float* bias = nullptr;  // [n], or null
  T* y = nullptr;               // [m, n] with a row stride of ldy elements
  float* y_float = nullptr;     // if set, receives the unrounded result instead of y
  int64_t ldy = 0;
  int module = -1;                          // module index in the segments' tables; -1: not adapted
  const IntegerPanels* integers = nullptr;  // the weights as integers, [n, k]
};

// x: [m, k] with a row stride of ldx elements. A token's rank-wide intermediate, multiplied by
// coefficient and scale, is rounded to T. inputs: replaces x as the input of the weights; it has
// x's shape and stride, and adapters still use x. gate: for two slices of equal n, the first y =
// gate(first) · second, and the second y is not written. largest: for RowRounding if x holds only
// part of each row's inputs, the largest magnitude of each whole row, [m].
template <typename T>
void project(const T* x, int64_t m, int64_t ldx, std::span<const Slice<T>> slices,
             std::span<const LoraSegment> segments, std::optional<Gate> gate,
             const ParallelFor& parallel, const T* inputs = nullptr,
             const float* largest = nullptr);

// Rows that linears of their own take, e.g. those of one expert.
template <typename T>
struct RowGroup {
  const T* x = nullptr;  // [m, k]
  int64_t m = 0;
  std::span<const Slice<T>> slices;       // their outputs are of these rows
  std::span<const LoraSegment> segments;  // within these rows
};

// project() for every group, in one launch. ldx: the row stride of all x.
template <typename T>
void project_groups(std::span<const RowGroup<T>> groups, int64_t ldx, std::optional<Gate> gate,
                    const ParallelFor& parallel);

}  // namespace valora::kernels
