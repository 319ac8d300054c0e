// Weights as integers with scales that a checkpoint can store.
#pragma once

#include <ATen/ATen.h>

#include "ops/quantised_tensor.h"

namespace valora::generator {

struct Grid {
  int bits = 8;
  int64_t group = 128;                    // inputs per scale; divides the inputs
  at::ScalarType scales = at::kBFloat16;  // in which the scales are stored
};

// w: float [out, in]. Each group gets the symmetric grid, with its largest values cut off where
// that makes the squared error smaller, and each weight the nearest value. Throws c10::Error if a
// value is not finite.
ops::QuantisedTensor round_to_nearest(const at::Tensor& w, const Grid& grid);

// The same grids, but weights are rounded one input after the other, and the inputs that follow
// make up for the error that outputs have so far (GPTQ, Frantar et al., ICLR '23). moments: float
// [in, in], the sum of x xᵀ over the inputs x of samples.
ops::QuantisedTensor round_by_moments(const at::Tensor& w, const at::Tensor& moments,
                                      const Grid& grid);

}  // namespace valora::generator
