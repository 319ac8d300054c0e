// The ByteVectors (product/byte_kernels.h) of AVX512-VNNI: one vpdpbusd multiplies four inputs by
// the unsigned weights of 16 outputs.
#pragma once

#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {
namespace {

struct VnniBytes : Avx512Floats {
  // 12 integer and 12 fp32 sums fit into registers.
  static constexpr int kTileSums = 12;
  // 8 integer and 2 × 8 fp32 sums fit into registers.
  static constexpr int kBlockSums = 8;
  static constexpr bool kStarts = true;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int>
  static constexpr int kOffset = 0;
  using Ints = __m512i;
  using Weights = __m512i;

  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static Ints no_ints() { return _mm512_setzero_si512(); }
  static Ints ints_from(int32_t sum) { return _mm512_set1_epi32(sum); }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    if constexpr (BITS == 4) {
      const __m512i words = _mm512_loadu_si512(chunk);
      return _mm512_and_si512(STEP == 0 ? words : _mm512_srli_epi16(words, 4),
                              _mm512_set1_epi8(15));
    }
    return _mm512_loadu_si512(chunk + 64 * STEP);
  }
  static __m512i inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
  }
  template <int>
  static void dot(Ints& ints, Weights w, __m512i x) {
    ints = _mm512_dpbusd_epi32(ints, w, x);
  }
  template <int>
  static Sums floats_of(Ints ints) {
    return _mm512_cvtepi32_ps(ints);
  }
};

}  // namespace
}  // namespace valora::kernels
