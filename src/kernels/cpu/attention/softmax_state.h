// What the attention kernels beside the products (KernelSet::update_softmax, add_values) are asked
// for.
#pragma once

#include <cstdint>

#include "kernels/cpu/product/panels.h"

namespace valora::kernels {

// sums[row, i] += Σ over keys of weights[row, key] · value[key, i], values in blocks of
// kPanelOutputs keys.
template <typename T>
struct ValueSum {
  const T* weights = nullptr;  // [rows, keys], rows ldw elements apart
  int64_t rows = 0;
  int64_t ldw = 0;
  int64_t keys = 0;                  // keys of the last block beyond this are not read
  const T* const* blocks = nullptr;  // of each block the head's panels
  const T* const* fetch =
      nullptr;  // of each block, as much memory again to be fetched meanwhile, or none
  int64_t dim = 0;
  float* sums = nullptr;  // [rows, panels_of(dim) * 16]
};

// One step of the online softmax: a row's scores of `keys` more keys into weights relative to the
// row's maximum so far.
template <typename T>
struct SoftmaxState {
  const float* scores = nullptr;  // [keys], and room up to a multiple of kPanelOutputs
  int64_t keys = 0;
  int64_t width = 0;  // weights beyond the keys, up to here, are zero
  float scale = 1;
  float row_max = 0;     // of all keys so far, times scale; is moved on
  float row_sum = 0;     // of the weights so far; is moved on
  float rescale = 1;     // what earlier sums are to be multiplied with
  T* weights = nullptr;  // [width], and room up to a multiple of kPanelOutputs
};

}  // namespace valora::kernels
