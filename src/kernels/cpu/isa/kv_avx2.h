// The KvVectors (attention/byte_sums.h) of AVX2.
#pragma once

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/vectors_avx2.h"

namespace valora::kernels {
namespace {

struct Avx2Kv : Avx2Float {
  static constexpr int kRows = 5;

  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kWords : RowCode::kFloats;

  static __m256i half_quad(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  template <KvFormat FORMAT, int I>
  static __m256 numbers_of_half(__m256i x) {
    if constexpr (I < 3) x = _mm256_slli_epi32(x, 24 - 8 * I);
    if constexpr (FORMAT == KvFormat::kInt8) return _mm256_cvtepi32_ps(_mm256_srai_epi32(x, 24));
    // e4m3 in the upper bits of fp32, less 120 in the exponent.
    x = _mm256_and_si256(_mm256_srai_epi32(x, 4), _mm256_set1_epi32(static_cast<int>(0x87f00000u)));
    return _mm256_mul_ps(_mm256_castsi256_ps(x), _mm256_set1_ps(0x1p112f));
  }
  template <KvFormat FORMAT, int I>
  static Sums numbers(const uint8_t* quad) {
    return {numbers_of_half<FORMAT, I>(half_quad(quad)),
            numbers_of_half<FORMAT, I>(half_quad(quad + 32))};
  }
  static void store_pairs(bf16* p, Sums even, Sums odd) {
    const auto joined = [](__m256 e, __m256 o) {
      return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(e), 16),
                                _mm256_castps_si256(o), 0xaa);
    };
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), joined(even.low, odd.low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), joined(even.high, odd.high));
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    store_pairs(panels, numbers<FORMAT, 0>(quad), numbers<FORMAT, 1>(quad));
    store_pairs(panels + 32, numbers<FORMAT, 2>(quad), numbers<FORMAT, 3>(quad));
  }

  struct Ints {
    __m256i low, high;  // outputs 0–7 and 8–15
  };
  using Words = Ints;
  template <int I>
  static __m256i words_of_half(__m256i x) {
    return _mm256_srai_epi16(I == 0 ? _mm256_slli_epi16(x, 8) : x, 8);
  }
  template <int I>
  static Words words(const uint8_t* quad) {
    return {words_of_half<I>(half_quad(quad)), words_of_half<I>(half_quad(quad + 32))};
  }
  static Ints no_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static void dot(Ints& ints, Words w, int32_t two) {
    const __m256i x = _mm256_set1_epi32(two);
    ints.low = _mm256_add_epi32(ints.low, _mm256_madd_epi16(w.low, x));
    ints.high = _mm256_add_epi32(ints.high, _mm256_madd_epi16(w.high, x));
  }
  static Sums floats_of(Ints ints) {
    return {_mm256_cvtepi32_ps(ints.low), _mm256_cvtepi32_ps(ints.high)};
  }
};

}  // namespace
}  // namespace valora::kernels
