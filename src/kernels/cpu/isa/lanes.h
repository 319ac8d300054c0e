// Vectors of 16 floats and their exponentials, for the files compiled for one instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/vector_math.h"

namespace valora::kernels {
namespace {

// 16 floats in the compiler's own vectors: every instruction set takes them as wide as it can.
using Lanes = float __attribute__((vector_size(64)));
using LaneBits = int32_t __attribute__((vector_size(64)));

// Adding 1.5 · 2^23 rounds to whole numbers, which are then in the low bits.
inline constexpr float kRound = 12582912.0f;

// e^x within 2 ulp for x <= 0, below e^-87 that.
inline __attribute__((always_inline)) Lanes exp_lanes(Lanes x) {
  x = x < -87.0f ? Lanes{} - 87.0f : x;
  const Lanes n = (x * kLog2E + kRound) - kRound;
  return (Lanes)((LaneBits)exp_of_rest(x, n) + (__builtin_convertvector(n, LaneBits) << 23));
}

// 2^x within 2^-18 for x < 127, below 2^-126 that: for what is rounded to bf16 anyway. 2^r by the
// polynomial whose largest relative error on |r| <= 1/2 is least.
inline __attribute__((always_inline)) Lanes exp2_lanes(Lanes x) {
  constexpr float kLeast = -126.0f;
  x = x < kLeast ? Lanes{} + kLeast : x;
  const Lanes moved = x + kRound, r = x - (moved - kRound);
  Lanes p = r * 9.5701003e-3f + 5.5917867e-2f;
  p = p * r + 2.4024744e-1f;
  p = p * r + 6.9312179e-1f;
  p = p * r + 9.9999928e-1f;
  return (Lanes)((LaneBits)p + ((LaneBits)moved << 23));
}

inline __attribute__((always_inline)) Lanes load_lanes(const float* p) {
  Lanes lanes;
  __builtin_memcpy(&lanes, p, sizeof lanes);
  return lanes;
}

// The lanes, each moved BY places to the front, around.
template <int BY>
inline __attribute__((always_inline)) Lanes rotated_lanes(Lanes lanes) {
  constexpr auto from = [](int i) { return (i + BY) & 15; };
  return __builtin_shufflevector(lanes, lanes, from(0), from(1), from(2), from(3), from(4), from(5),
                                 from(6), from(7), from(8), from(9), from(10), from(11), from(12),
                                 from(13), from(14), from(15));
}

// In halves: four steps deep.
template <typename Join>
inline __attribute__((always_inline)) float reduce_lanes(Lanes lanes, const Join& join) {
  lanes = join(lanes, rotated_lanes<8>(lanes));
  lanes = join(lanes, rotated_lanes<4>(lanes));
  lanes = join(lanes, rotated_lanes<2>(lanes));
  return join(lanes, rotated_lanes<1>(lanes))[0];
}
inline __attribute__((always_inline)) float max_lane(Lanes lanes) {
  return reduce_lanes(
      lanes, [](Lanes a, Lanes b) __attribute__((always_inline)) { return a > b ? a : b; });
}
inline __attribute__((always_inline)) float sum_lanes(Lanes lanes) {
  return reduce_lanes(lanes, [](Lanes a, Lanes b) __attribute__((always_inline)) { return a + b; });
}

}  // namespace
}  // namespace valora::kernels
