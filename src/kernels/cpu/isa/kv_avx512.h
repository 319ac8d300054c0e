// The KvVectors (attention/byte_attention_kernels.h) of AVX-512, with VNNI where the file that
// includes this is compiled for it.
#pragma once

#include "kernels/cpu/isa/vectors_avx512.h"
#include "kernels/types/kv_format.h"

namespace valora::kernels {
namespace {

struct Avx512Kv : Avx512Float {
  static constexpr int kRows = 8;

  static __m256i pairs_of(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Converts e4m3 in the upper bytes of words to fp16 with 2^-8 of the value, then to fp32.
  static __m512 widened_halves(__m256i upper) {
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(upper, 1),
                                            _mm256_set1_epi16(static_cast<int16_t>(0xbf80))));
  }

  template <KvFormat FORMAT>
  static void numbers(const uint8_t* p, Sums& even, Sums& odd) {
    if constexpr (FORMAT == KvFormat::kInt8) {
      const __m512i both = words(p);
      even = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(both, 16), 16));
      odd = _mm512_cvtepi32_ps(_mm512_srai_epi32(both, 16));
    } else {
      const __m256i pairs = pairs_of(p);
      even = widened_halves(_mm256_slli_epi16(pairs, 8));
      odd = widened_halves(pairs);
    }
  }
  static void store_pairs(bf16* p, Sums even, Sums odd) {
    _mm512_storeu_si512(
        p, _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                   _mm512_castps_si512(odd)));
  }

  static constexpr bool kIntegers = true;
  using Ints = __m512i;
  using Words = __m512i;
  static Words words(const uint8_t* p) { return _mm512_cvtepi8_epi16(pairs_of(p)); }
  static Ints no_ints() { return _mm512_setzero_si512(); }
  static void dot(Ints& ints, Words w, int32_t pair) {
#ifdef __AVX512VNNI__
    ints = _mm512_dpwssd_epi32(ints, w, _mm512_set1_epi32(pair));
#else
    ints = _mm512_add_epi32(ints, _mm512_madd_epi16(w, _mm512_set1_epi32(pair)));
#endif
  }
  static Sums floats_of(Ints ints) { return _mm512_cvtepi32_ps(ints); }
};

}  // namespace
}  // namespace valora::kernels
