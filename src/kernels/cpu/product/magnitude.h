#pragma once

#include <cstdint>

namespace valora::kernels {

// The bits of the largest magnitude in x, [count]; of a NaN or infinity if there is one. 0 if count
// is 0.
uint32_t largest_bits(const float* x, int64_t count);

}  // namespace valora::kernels
