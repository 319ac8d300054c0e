// Products with integer weights: y = x Wᵀ + bias. Integers are decoded exactly and multiplied by
// the unrounded x; each group's sum is kept in fp32 and multiplied by its scale; y is rounded once.
// Uses tensor cores for bf16 and fp16. All sums have a fixed order.
#pragma once

#include "kernels/cuda/integer_matrix.h"

namespace valora::kernels::cuda {

inline constexpr int kMaxIntegerSlices = 3;

// One linear. Strides in elements.
struct IntegerSlice {
  IntegerMatrix w;
  const void* bias = nullptr;  // [n], in the dtype; null: none
  void* y = nullptr;           // [tokens, n]; null: only the sums are written
  int64_t y_stride = 0;
  // [tokens, n], contiguous: y before rounding, as the result or to add adapters to
  // (LoraSlice::sums). Null: not written.
  float* sums = nullptr;
};

// Up to kMaxIntegerSlices linears with the same input x[tokens, in]. Those with the same bits and
// the same kind of groups share a launch.
struct IntegerCall {
  Dtype dtype = Dtype::kBf16;
  const void* x = nullptr;
  int64_t x_stride = 0;
  int32_t tokens = 0, in = 0;
  IntegerSlice slices[kMaxIntegerSlices];
  int32_t slice_count = 0;
  // Strips per warp, for many tokens: 1 or 2; 0: depends on the number of thread blocks.
  int32_t strips = 0;
};

Status integer_product(const IntegerCall& call, Stream stream);

}  // namespace valora::kernels::cuda
