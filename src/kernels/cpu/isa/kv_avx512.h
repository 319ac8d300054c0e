// The KvVectors (attention/byte_sums.h) of AVX-512 without VNNI.
#pragma once

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {
namespace {

struct Avx512Kv : Avx512Float {
  static constexpr int kRows = 8;
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kWords : RowCode::kFloats;

  static __m512i load_quads(const uint8_t* quad) { return _mm512_loadu_si512(quad); }

  template <KvFormat FORMAT, int I>
  static Sums numbers(const uint8_t* quad) {
    __m512i x = load_quads(quad);
    if constexpr (I < 3) x = _mm512_slli_epi32(x, 24 - 8 * I);
    if constexpr (FORMAT == KvFormat::kInt8) return _mm512_cvtepi32_ps(_mm512_srai_epi32(x, 24));
    // e4m3 in the upper bits of fp32, less 120 in the exponent.
    x = _mm512_and_si512(_mm512_srai_epi32(x, 4), _mm512_set1_epi32(static_cast<int>(0x87f00000u)));
    return _mm512_mul_ps(_mm512_castsi512_ps(x), _mm512_set1_ps(0x1p112f));
  }
  static __m512i joined(Sums even, Sums odd) {
    return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                   _mm512_castps_si512(odd));
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    _mm512_storeu_si512(panels, joined(numbers<FORMAT, 0>(quad), numbers<FORMAT, 1>(quad)));
    _mm512_storeu_si512(panels + 32, joined(numbers<FORMAT, 2>(quad), numbers<FORMAT, 3>(quad)));
  }

  using Ints = __m512i;
  using Words = __m512i;
  template <int I>
  static Words words(const uint8_t* quad) {
    const __m512i x = load_quads(quad);
    return _mm512_srai_epi16(I == 0 ? _mm512_slli_epi16(x, 8) : x, 8);
  }
  static Ints no_ints() { return _mm512_setzero_si512(); }
  static void dot(Ints& ints, Words w, int32_t two) {
    ints = _mm512_add_epi32(ints, _mm512_madd_epi16(w, _mm512_set1_epi32(two)));
  }
  static Sums floats_of(Ints ints) { return _mm512_cvtepi32_ps(ints); }
};

}  // namespace
}  // namespace valora::kernels
