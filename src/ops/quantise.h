// Weights in floats as integers.
#pragma once

#include "ops/quantised_tensor.h"

namespace valora::ops {

// How the weights of a linear become integers.
struct Quantisation {
  int bits = 8;         // 4 or 8
  int64_t group = 128;  // inputs per scale, or fewer if there are fewer
};

// w: [out, in] of any float type, in host memory. Symmetric; see kernels/cpu/product/quantise.h.
// Works on a few rows at a time. Throws c10::Error if a value is not finite.
QuantisedTensor quantise(const at::Tensor& w, const Quantisation& to);

// Bytes of the packed integers of a weight [out, in], with scales of bf16 as quantise() makes them,
// or of fp32, and with or without minimums.
size_t quantised_bytes(int64_t out, int64_t in, const Quantisation& to, bool float_scales = false,
                       bool minimums = false);

}  // namespace valora::ops
