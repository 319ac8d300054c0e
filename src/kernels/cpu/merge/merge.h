// Adapters merged into weights where these lie (VaLoRA §4.4.1): W' = W + coefficient · B A, in
// fp32, rounded once.
#pragma once

#include <span>

#include "base/parallel.h"
#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

// One linear and its adapter. T is float or bf16.
template <typename T>
struct Merge {
  Panels<T> w;          // [n, k], side by side
  T* merged = nullptr;  // W' in panels of the same layout; may be w's own
  Panels<T> a;          // n = rank, k = w.k
  Panels<T> b;          // n = w.n, k = rank
  float coefficient = 1;
};

// Any number of linears (all of a model's) in one parallel launch.
template <typename T>
void merge(std::span<const Merge<T>> merges, const ParallelFor& parallel);

}  // namespace valora::kernels
