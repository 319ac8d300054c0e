// Quantises floating-point weights to integers.
#pragma once

#include "ops/weights/quantised_tensor.h"

namespace valora::ops {

// How to quantise a linear's weights.
struct Quantisation {
  int bits = 8;         // 4 or 8
  int64_t group = 128;  // inputs per scale; at most all of them
};

// w: [out, in] of any float type, in host memory. Symmetric; see kernels/cpu/product/quantise.h.
// Works on a few rows at a time. Throws c10::Error if a value is not finite.
QuantisedTensor quantise(const at::Tensor& w, const Quantisation& to);

// Bytes of a packed integer weight [out, in] with bf16 scales, as quantise() makes them, or fp32
// scales, and with or without minimums.
size_t quantised_bytes(int64_t out, int64_t in, const Quantisation& to, bool float_scales = false,
                       bool minimums = false);

}  // namespace valora::ops
