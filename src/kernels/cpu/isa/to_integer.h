#pragma once

namespace valora::kernels {

// 1.5 · 2^23: adding it rounds to an integer, which is then in the low bits of the sum; subtracting
// it again gives the integer.
inline constexpr float kToInteger = 12582912.0f;

}  // namespace valora::kernels
