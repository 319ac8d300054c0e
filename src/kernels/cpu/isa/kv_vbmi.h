// The KvVectors (attention/byte_sums.h) of AVX-512 with VNNI, BF16 and VBMI, which looks up the
// bytes of bf16 in tables of 128.
#pragma once

#include "kernels/cpu/attention/byte_softmax_kernels.h"
#include "kernels/cpu/isa/bf16_lookup.h"
#include "kernels/cpu/isa/kv_vnni.h"

namespace valora::kernels {
namespace {

// Magnitudes by their codes: of int8, the integers; of e4m3, the numbers divided by 256.
inline constexpr Bf16Table kInt8Magnitudes = bf16_table([](int code) { return code; });
inline constexpr Bf16Table kFp8Magnitudes = bf16_table([](int code) {
  const int exponent = code >> 3, fraction = code & 7;
  float number = static_cast<float>(exponent == 0 ? fraction : 8 + fraction) / (1 << 17);
  for (int i = 1; i < exponent; ++i) number *= 2;
  return number;
});

struct VbmiKv : VnniKv {
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kBytes : RowCode::kBf16;

  // The bytes of the quad's numbers in bf16.
  template <KvFormat FORMAT>
  static void bytes_of_bf16(const uint8_t* quad, __m512i& lower, __m512i& upper) {
    const __m512i x = load_quads(quad),
                  magnitudes = FORMAT == KvFormat::kInt8 ? _mm512_abs_epi8(x) : x;
    constexpr const Bf16Table& kTable =
        FORMAT == KvFormat::kInt8 ? kInt8Magnitudes : kFp8Magnitudes;
    lower = looked_up(kTable.lower, magnitudes);
    upper = or_and(looked_up(kTable.upper, magnitudes), x, sign_bits());
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    __m512i lower, upper;
    bytes_of_bf16<FORMAT>(quad, lower, upper);
    // The pairs of two outputs of each four, then of the others.
    const __m512 first = _mm512_castsi512_ps(_mm512_unpacklo_epi8(lower, upper)),
                 last = _mm512_castsi512_ps(_mm512_unpackhi_epi8(lower, upper));
    _mm512_storeu_ps(panels, _mm512_shuffle_ps(first, last, _MM_SHUFFLE(2, 0, 2, 0)));
    _mm512_storeu_ps(panels + 32, _mm512_shuffle_ps(first, last, _MM_SHUFFLE(3, 1, 3, 1)));
  }

  using Pairs = __m512bh;
  template <KvFormat FORMAT>
  static void pairs(const uint8_t* quad, Pairs& even, Pairs& odd) {
    __m512i lower, upper;
    bytes_of_bf16<FORMAT>(quad, lower, upper);
    even = (__m512bh)or_and(_mm512_slli_epi16(upper, 8), lower, _mm512_set1_epi16(0xff));
    odd = (__m512bh)or_and(_mm512_srli_epi16(lower, 8), upper,
                           _mm512_set1_epi16(static_cast<int16_t>(0xff00)));
  }
  static void dot(Sums& sums, Pairs pairs, int32_t two) {
    sums = _mm512_dpbf16_ps(sums, (__m512bh)_mm512_set1_epi32(two), pairs);
  }
  static LaneWords rounded(Lanes lanes) {
    return (LaneWords)_mm512_cvtneps_pbh(__builtin_bit_cast(__m512, lanes));
  }
};

}  // namespace
}  // namespace valora::kernels
