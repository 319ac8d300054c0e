// Merges adapters into weights (VaLoRA §4.4.1): W' = W + coefficient · B A, computed in fp32 and
// rounded once. Weights and factors stay in panels. Arguments are not checked.
#pragma once

#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/product/integer_panels.h"
#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

// One linear and its adapter. T is float or bf16.
template <typename T>
struct Merge {
  Panels<T> w;  // [n, k], contiguous; has no data if `integers` is set
  // W' in panels of T; may equal w.data. A separate, 64-byte aligned W' is written with
  // non-temporal stores.
  T* merged = nullptr;
  Panels<T> a;  // n = rank, k = w.k
  Panels<T> b;  // n = w.n, k = rank
  float coefficient = 1;
  const IntegerPanels* integers = nullptr;  // W as integers
};

// Merges any number of linears, e.g. all of a model's, in one parallel launch.
template <typename T>
void merge(std::span<const Merge<T>> merges, const ParallelFor& parallel);

}  // namespace valora::kernels
