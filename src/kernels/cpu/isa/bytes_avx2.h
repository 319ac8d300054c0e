// The ByteVectors (product/byte_kernels.h) of AVX2.
#pragma once

#include "kernels/cpu/isa/vectors_avx2.h"

namespace valora::kernels {
namespace {

// 4 bits: vpmaddubsw adds pairs of products in 16 bits, where eight sums fit without overflow. 8
// bits: inputs and weights are widened to 16 bits for vpmaddwd.
struct Avx2Bytes : Avx2Floats {
  static constexpr int kTileSums = 5;
  static constexpr int kBlockSums = 0;
  static constexpr bool kStarts = false;  // a start value would overflow 16 bits
  template <int BITS>
  static constexpr int64_t kMostSpan = BITS == 4 ? 32 : 1 << 14;
  template <int BITS>
  static constexpr int kInputBytes = BITS == 4 ? 1 : 2;
  template <int BITS>
  static constexpr int kOffset = BITS == 4 ? 0 : -128;
  struct Ints {
    __m256i low, high;  // outputs 0–7 and 8–15
  };
  using Weights = Ints;

  static Ints no_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    if constexpr (BITS == 4) {
      const auto* words = reinterpret_cast<const __m256i*>(chunk);
      const __m256i mask = _mm256_set1_epi8(15);
      const auto nibbles = [&](const __m256i* p) __attribute__((always_inline)) {
        const __m256i bits = _mm256_loadu_si256(p);
        return _mm256_and_si256(STEP == 0 ? bits : _mm256_srli_epi16(bits, 4), mask);
      };
      return {nibbles(words), nibbles(words + 1)};
    }
    // The two inputs of a step move to the high bytes of 16 bits, which a shift widens.
    constexpr char kA = STEP % 2 * 2, kB = kA + 1;
    const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        -1, kA, -1, kB, -1, kA + 4, -1, kB + 4, -1, kA + 8, -1, kB + 8, -1, kA + 12, -1, kB + 12));
    const auto pairs = [&](const uint8_t* words) __attribute__((always_inline)) {
      const __m256i values =
          _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)),
                           _mm256_set1_epi8(static_cast<char>(0x80)));
      return _mm256_srai_epi16(_mm256_shuffle_epi8(values, order), 8);
    };
    const uint8_t* words = chunk + STEP / 2 * 64;
    return {pairs(words), pairs(words + 32)};
  }
  static __m256i inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
  }
  template <int BITS>
  static void dot(Ints& ints, Weights w, __m256i x) {
    if constexpr (BITS == 4) {
      ints.low = _mm256_add_epi16(ints.low, _mm256_maddubs_epi16(w.low, x));
      ints.high = _mm256_add_epi16(ints.high, _mm256_maddubs_epi16(w.high, x));
    } else {
      ints.low = _mm256_add_epi32(ints.low, _mm256_madd_epi16(w.low, x));
      ints.high = _mm256_add_epi32(ints.high, _mm256_madd_epi16(w.high, x));
    }
  }
  template <int BITS>
  static Sums floats_of(Ints ints) {
    if constexpr (BITS == 4) {
      const __m256i ones = _mm256_set1_epi16(1);
      ints = {_mm256_madd_epi16(ints.low, ones), _mm256_madd_epi16(ints.high, ones)};
    }
    return {_mm256_cvtepi32_ps(ints.low), _mm256_cvtepi32_ps(ints.high)};
  }
};

}  // namespace
}  // namespace valora::kernels
