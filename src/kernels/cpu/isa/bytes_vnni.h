// The ByteVectors (product/byte_kernels.h) of AVX512-VNNI: one vpdpbusd multiplies four inputs with
// the weights of 16 outputs, which are unsigned.
#pragma once

#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {
namespace {

struct VnniBytes : Avx512Floats {
  // 12 integer and 12 fp32 sums stay in registers.
  static constexpr int kTileSums = 12;
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
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    if constexpr (BITS == 4) {
      const __m512i words = _mm512_loadu_si512(chunk);
      return _mm512_and_si512(STEP == 0 ? words : _mm512_srli_epi16(words, 4),
                              _mm512_set1_epi8(15));
    }
    // Four inputs of 16 outputs, a lane per input: first four outputs per lane, then the four bytes
    // of an output together.
    const __m512i inputs = _mm512_loadu_si512(chunk + 64 * STEP);
    const __m512i outputs = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), inputs);
    const __m512i transposed =
        _mm512_shuffle_epi8(outputs, _mm512_broadcast_i32x4(_mm_setr_epi8(
                                         0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
    return _mm512_xor_si512(transposed, _mm512_set1_epi8(static_cast<char>(0x80)));
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
