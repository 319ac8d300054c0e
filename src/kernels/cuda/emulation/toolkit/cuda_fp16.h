// The parts of the CUDA toolkit's header of the same name that the kernels use, for the host.
// Common values are converted inline; the compiler's own conversions are function calls.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/emulation/toolkit/vector_types.h"

struct __half {
  uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline float __half2float(__half v) {
  constexpr uint32_t kExponents = 0x7c00, kBias = uint32_t{127 - 15} << 23;
  const uint32_t exponent = v.bits & kExponents, sign = uint32_t{v.bits & 0x8000u} << 16;
  if (exponent == 0 || exponent == kExponents)  // subnormal, zero, infinity or NaN
    return static_cast<float>(std::bit_cast<_Float16>(v.bits));
  return std::bit_cast<float>(sign | ((uint32_t{v.bits & 0x7fffu} << 13) + kBias));
}
// Rounds to nearest even.
inline __half __float2half_rn(float v) {
  constexpr uint32_t kLeastNormal = 0x38800000, kInfiniteFrom = 0x477ff000;
  const auto bits = std::bit_cast<uint32_t>(v);
  const uint32_t size = bits & 0x7fffffff;
  if (v != v) return {0x7fff};
  if (size < kLeastNormal || size >= kInfiniteFrom)
    return {std::bit_cast<uint16_t>(static_cast<_Float16>(v))};
  const uint32_t rounded = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  return {static_cast<uint16_t>((bits >> 16 & 0x8000u) | rounded)};
}
inline __half2 __floats2half2_rn(float first, float second) {
  return {__float2half_rn(first), __float2half_rn(second)};
}
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline __half2 __hsub2(__half2 a, __half2 b) {
  return __floats2half2_rn(__half2float(a.x) - __half2float(b.x),
                           __half2float(a.y) - __half2float(b.y));
}
