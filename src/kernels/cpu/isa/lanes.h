// Vectors of 16 floats with exponentials and reductions, for files compiled for one instruction
// set.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <cstdint>

#include "kernels/cpu/isa/to_integer.h"
#include "kernels/cpu/isa/vector_math.h"

namespace valora::kernels {
namespace {

// Compiler vectors: each instruction set splits the 16 floats into its widest registers.
using Lanes = float __attribute__((vector_size(64)));
using LaneBits = int32_t __attribute__((vector_size(64)));

// a > b ? a : b. g++ 12 compiles that to scalar comparisons if two registers hold the vector.
inline __attribute__((always_inline)) Lanes larger(Lanes a, Lanes b) {
#ifdef __AVX512F__
  return (Lanes)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  struct Halves {
    __m256 low, high;
  };
  const auto x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
  return __builtin_bit_cast(Lanes,
                            Halves{_mm256_max_ps(x.low, y.low), _mm256_max_ps(x.high, y.high)});
#elif defined(__ARM_NEON)
  struct Quarters {
    float32x4_t part[4];
  };
  auto x = __builtin_bit_cast(Quarters, a);
  const auto y = __builtin_bit_cast(Quarters, b);
  for (int i = 0; i < 4; ++i)
    x.part[i] = vbslq_f32(vcgtq_f32(x.part[i], y.part[i]), x.part[i], y.part[i]);
  return __builtin_bit_cast(Lanes, x);
#else
  return a > b ? a : b;
#endif
}
// The same of the bits as integers: of magnitudes the larger one, or a NaN.
inline __attribute__((always_inline)) Lanes larger_bits(Lanes a, Lanes b) {
#ifdef __AVX512F__
  return (Lanes)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  struct Halves {
    __m256i low, high;
  };
  const auto x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
  return __builtin_bit_cast(
      Lanes, Halves{_mm256_max_epi32(x.low, y.low), _mm256_max_epi32(x.high, y.high)});
#elif defined(__ARM_NEON)
  struct Quarters {
    int32x4_t part[4];
  };
  auto x = __builtin_bit_cast(Quarters, a);
  const auto y = __builtin_bit_cast(Quarters, b);
  for (int i = 0; i < 4; ++i) x.part[i] = vmaxq_s32(x.part[i], y.part[i]);
  return __builtin_bit_cast(Lanes, x);
#else
  return (LaneBits)a > (LaneBits)b ? a : b;
#endif
}

// e^x within 2 ulp for x <= 0. Clamps inputs below -87 to -87.
inline __attribute__((always_inline)) Lanes exp_lanes(Lanes x) {
  x = larger(Lanes{} - 87.0f, x);
  const Lanes n = (x * kLog2E + kToInteger) - kToInteger;
  return (Lanes)((LaneBits)exp_of_rest(x, n) + (__builtin_convertvector(n, LaneBits) << 23));
}

// 2^x for x < 127 with a relative error below 2^-18, for results that will be rounded to bf16.
// Clamps inputs below -126 to -126. 2^r is the minimax polynomial for the relative error on |r| <=
// 1/2.
inline __attribute__((always_inline)) Lanes exp2_lanes(Lanes x) {
  x = larger(Lanes{} - 126.0f, x);
  const Lanes moved = x + kToInteger, r = x - (moved - kToInteger);
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

// Rotates the lanes left: lane i of the result is lane (i + BY) mod 16.
template <int BY>
inline __attribute__((always_inline)) Lanes rotated_lanes(Lanes lanes) {
  constexpr auto from = [](int i) { return (i + BY) & 15; };
  return __builtin_shufflevector(lanes, lanes, from(0), from(1), from(2), from(3), from(4), from(5),
                                 from(6), from(7), from(8), from(9), from(10), from(11), from(12),
                                 from(13), from(14), from(15));
}

// A tree reduction of depth four.
template <typename Join>
inline __attribute__((always_inline)) float reduce_lanes(Lanes lanes, const Join& join) {
  lanes = join(lanes, rotated_lanes<8>(lanes));
  lanes = join(lanes, rotated_lanes<4>(lanes));
  lanes = join(lanes, rotated_lanes<2>(lanes));
  return join(lanes, rotated_lanes<1>(lanes))[0];
}
inline __attribute__((always_inline)) float max_lane(Lanes lanes) {
  return reduce_lanes(lanes, larger);
}
inline __attribute__((always_inline)) float sum_lanes(Lanes lanes) {
  return reduce_lanes(lanes, [](Lanes a, Lanes b) __attribute__((always_inline)) { return a + b; });
}

// Of the KvVectors (attention/byte_sums.h), where no instruction narrows or adds 16 integers.
struct LaneBytes {
  static void store_bytes(uint8_t* p, LaneBits bits) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<uint8_t>(bits[i]);
  }
  static int32_t sum_of_ints(LaneBits ints) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += ints[i];
    return sum;
  }
};

}  // namespace
}  // namespace valora::kernels
