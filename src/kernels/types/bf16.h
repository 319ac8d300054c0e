// bfloat16 for the torch-free kernels.
#pragma once

#include <bit>
#include <cstdint>

namespace valora::kernels {

struct bf16 {
  uint16_t bits;
};

inline float to_float(bf16 v) { return std::bit_cast<float>(uint32_t{v.bits} << 16); }
inline float to_float(float v) { return v; }

template <typename T>
T from_float(float v);
template <>
inline float from_float<float>(float v) {
  return v;
}
// Rounds to nearest even. NaN stays NaN.
template <>
inline bf16 from_float<bf16>(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(v != v ? 0x7fc0u : rounded)};
}

}  // namespace valora::kernels
