// Memory for what is read in one sweep a step: large allocations lie on huge pages where the system
// has them (some 15 % more bandwidth than on pages of 4 KiB).
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// A CPU tensor of one dimension; its values are zero. Throws c10::Error where memory is not to be
// had.
at::Tensor huge_zeros(int64_t elements, at::ScalarType dtype);

}  // namespace valora::ops
