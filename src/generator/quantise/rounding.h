// Rounds weights to integers, with scales that a checkpoint can store.
#pragma once

#include <ATen/ATen.h>

#include "ops/weights/quantised_tensor.h"

namespace valora::generator {

struct Grid {
  int bits = 8;
  int64_t group = 128;                    // inputs per scale; must divide the number of inputs
  at::ScalarType scales = at::kBFloat16;  // dtype in which the scales are stored
};

// w: float [out, in]. Each group gets a symmetric grid, clipped where that reduces the squared
// error, and each weight is rounded to the nearest value. Throws c10::Error if a value is not
// finite.
ops::QuantisedTensor round_to_nearest(const at::Tensor& w, const Grid& grid);

// Uses the same grids, but rounds one input after the other, and later inputs compensate for the
// error accumulated in the outputs (GPTQ, Frantar et al., ICLR '23). moments: float [in, in], the
// sum of x xᵀ over the inputs x of samples.
ops::QuantisedTensor round_by_moments(const at::Tensor& w, const at::Tensor& moments,
                                      const Grid& grid);

}  // namespace valora::generator
