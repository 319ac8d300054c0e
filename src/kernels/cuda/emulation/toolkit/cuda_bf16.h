// The parts of the CUDA toolkit's header of the same name that the kernels use, for the host.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 v) {
  return std::bit_cast<float>(uint32_t{v.bits} << 16);
}
inline __nv_bfloat16 __float2bfloat16_rn(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (v != v) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float first, float second) {
  return {__float2bfloat16_rn(first), __float2bfloat16_rn(second)};
}
inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return __floats2bfloat162_rn(__bfloat162float(a.x) - __bfloat162float(b.x),
                               __bfloat162float(a.y) - __bfloat162float(b.y));
}
