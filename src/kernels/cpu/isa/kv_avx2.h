// The KvVectors (attention/byte_attention_kernels.h) of AVX2.
#pragma once

#include "kernels/cpu/isa/vectors_avx2.h"
#include "kernels/types/kv_format.h"

namespace valora::kernels {
namespace {

struct Avx2Kv : Avx2Float {
  static constexpr int kRows = 5;

  static __m256i pairs_of(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static __m256i words_of(const uint8_t* p) {  // sign-extended
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static __m256 low_word(__m256i words) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(words, 16), 16));
  }
  static __m256 high_word(__m256i words) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(words, 16));
  }
  // Converts e4m3 in the upper bytes of words to fp16 with 2^-8 of the value: the same bits with a
  // longer exponent field.
  static __m256i halves(__m256i upper) {
    return _mm256_and_si256(_mm256_srai_epi16(upper, 1),
                            _mm256_set1_epi16(static_cast<int16_t>(0xbf80)));
  }
  static Sums widened_halves(__m256i words) {
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(words)),
            _mm256_cvtph_ps(_mm256_extracti128_si256(words, 1))};
  }

  template <KvFormat FORMAT>
  static void numbers(const uint8_t* p, Sums& even, Sums& odd) {
    if constexpr (FORMAT == KvFormat::kInt8) {
      const __m256i first = words_of(p), last = words_of(p + 16);
      even = {low_word(first), low_word(last)};
      odd = {high_word(first), high_word(last)};
    } else {
      const __m256i pairs = pairs_of(p);
      even = widened_halves(halves(_mm256_slli_epi16(pairs, 8)));
      odd = widened_halves(halves(pairs));
    }
  }
  static void store_pairs(bf16* p, Sums even, Sums odd) {
    const auto joined = [](__m256 e, __m256 o) {
      return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(e), 16),
                                _mm256_castps_si256(o), 0xaa);
    };
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), joined(even.low, odd.low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), joined(even.high, odd.high));
  }

  static constexpr bool kIntegers = true;
  struct Ints {
    __m256i low, high;  // outputs 0–7 and 8–15
  };
  using Words = Ints;
  static Words words(const uint8_t* p) { return {words_of(p), words_of(p + 16)}; }
  static Ints no_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static void dot(Ints& ints, Words w, int32_t pair) {
    const __m256i x = _mm256_set1_epi32(pair);
    ints.low = _mm256_add_epi32(ints.low, _mm256_madd_epi16(w.low, x));
    ints.high = _mm256_add_epi32(ints.high, _mm256_madd_epi16(w.high, x));
  }
  static Sums floats_of(Ints ints) {
    return {_mm256_cvtepi32_ps(ints.low), _mm256_cvtepi32_ps(ints.high)};
  }
};

}  // namespace
}  // namespace valora::kernels
