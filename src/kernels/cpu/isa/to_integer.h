#pragma once

namespace valora::kernels {

// 1.5 · 2^23. Adding it rounds to an integer, held in the low bits of the sum; subtracting it again
// gives that integer as a float.
inline constexpr float kToInteger = 12582912.0f;

}  // namespace valora::kernels
