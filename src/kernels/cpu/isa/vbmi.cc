#ifdef __x86_64__

// AVX-512 with BF16, VNNI and VBMI, which looks up the bytes of bf16 in tables of 128.
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/attention/byte_softmax_kernels.h"
#include "kernels/cpu/isa/avx512.h"
#include "kernels/cpu/isa/bf16_lookup.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/vnni.h"
#include "kernels/cpu/product/integer_kernels.h"

namespace valora::kernels {
namespace {

// The Vectors decode 8-bit integers by look-ups: half as many instructions, but most of them wait
// for the same execution units as the products. So only a few rows, which decode more than they
// multiply, gain.
// Magnitudes of -128 to 127. Code 0 is that of -128: zero is told apart by its own mask.
inline constexpr Bf16Table kMagnitudes =
    bf16_table([](int code) { return code == 0 ? 128 : code; });

struct VbmiBf16 : Avx512Bf16 {
  static constexpr int kLookUpRows = 3;

  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    static_assert(BITS == 8);
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

// The KvVectors (attention/byte_sums.h).
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

void multiply_integers_vbmi(const IntegerProduct& p) {
  constexpr int kRows = VbmiBf16::kLookUpRows;
  if (p.w.bits == 8 && p.m > 0 && p.m <= kRows)
    return multiply_few_from<VbmiBf16, IntegerSource<VbmiBf16, 8>, kRows>(p);
  multiply_integers_avx512bf16(p);
}

}  // namespace

void add_vbmi(IsaKernels& kernels) {
  kernels.of_bf16.multiply_integers = multiply_integers_vbmi;
  kernels.byte_attention = byte_attention_kernels_of<VbmiKv>();
}

}  // namespace valora::kernels

#endif
