#pragma once

#include <cstdint>

namespace valora::kernels {

// The bits of the largest magnitude of x, [count]; those of a NaN or an infinity if there is one. 0
// without any.
uint32_t largest_bits(const float* x, int64_t count);

}  // namespace valora::kernels
