// Arguments of the attention kernels KernelSet::add_values and KernelSet::update_softmax. Each call
// runs on one thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

// sums[row, i] += Σ_key weights[row, key] · value[key, i], in fp32.
template <typename T>
struct ValueSum {
  const T* weights = nullptr;  // [rows, keys] with a row stride of ldw elements
  int64_t rows = 0;
  int64_t ldw = 0;
  int64_t keys = 0;                  // keys beyond these in the last block are not read
  const T* const* blocks = nullptr;  // per block of kPanelOutputs keys: the head's value panels
  // Per block: memory of the same size to prefetch into L2. Null: no prefetch.
  const T* const* fetch = nullptr;
  int64_t dim = 0;
  float* sums = nullptr;  // [rows, panels_of(dim) * kPanelOutputs]
};

// One online-softmax step for one row: updates the maximum with `keys` more scores and turns them
// into weights exp(scale · score - row_max), rounded to T.
template <typename T>
struct SoftmaxState {
  const float* scores = nullptr;  // [keys], readable up to a multiple of kPanelOutputs
  int64_t keys = 0;
  int64_t width = 0;  // weights[keys, width) are set to zero
  float scale = 1;
  float row_max = 0;     // in, out: maximum of scale · score so far
  float row_sum = 0;     // in, out: sum of the rounded weights so far
  float rescale = 1;     // out: factor to apply to the value sums of earlier steps
  T* weights = nullptr;  // [width], writable up to a multiple of kPanelOutputs
};

}  // namespace valora::kernels
