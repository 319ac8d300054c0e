// The Vectors of AVX-512 with BF16 and VBMI, which decode 8-bit integers by look-ups: half as many
// instructions, but most of them wait for the same execution units as the products. So only a few
// rows, which decode more than they multiply, gain.
#pragma once

#include "kernels/cpu/isa/bf16_lookup.h"
#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {
namespace {

// Magnitudes of -128 to 127. Code 0 is that of -128: zero is told apart by its own mask.
inline constexpr Bf16Table kMagnitudes =
    bf16_table([](int code) { return code == 0 ? 128 : code; });

struct VbmiBf16 : Avx512Bf16 {
  static constexpr int kLookUpRows = 3;

  template <int I>
  static Weights bytes(const uint8_t* chunk) {
    // In each 128 bits: the first pairs of inputs of four outputs, then their second pairs.
    const __m512i pairs =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const __m512i stored = _mm512_loadu_si512(chunk + I / 2 * 64),
                  values = _mm512_xor_si512(_mm512_shuffle_epi8(stored, pairs), sign_bits()),
                  codes = _mm512_abs_epi8(values), lower = looked_up(kMagnitudes.lower, codes),
                  magnitude =
                      looked_up(kMagnitudes.upper, codes, _mm512_test_epi8_mask(values, values)),
                  upper = or_and(magnitude, values, sign_bits());
    return (__m512bh)(I % 2 == 0 ? _mm512_unpacklo_epi8(lower, upper)
                                 : _mm512_unpackhi_epi8(lower, upper));
  }
};

}  // namespace
}  // namespace valora::kernels
