// AVX-512 without BF16: pairs are widened to fp32, the even input by a shift, the odd one by a mask.
#ifdef __x86_64__

#include "kernels/cpu/avx512_vectors.h"
#include "kernels/cpu/product_tiles.h"

namespace valora::kernels {
namespace {

struct Avx512 : Avx512Floats {
  static constexpr int kSteps = 2;
  using Weights = __m512;

  static __m256i rounded(Sums sums) {
    const __m512i bits = _mm512_castps_si512(sums);
    const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(nearest, 16), nan, _mm512_set1_epi32(0x7fc0)));
  }
  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static void store(bf16* p, int64_t count, Sums sums) { store_bits(p, count, rounded(sums)); }

  template <int STEP>
  static __m512 widened(__m512i pairs) {
    if constexpr (STEP == 0) return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  template <int STEP>
  static Weights weights(const bf16* p) { return widened<STEP>(_mm512_loadu_si512(p)); }
  template <int STEP>
  static __m512 value(const bf16* x) { return widened<STEP>(broadcast_pair(x)); }
  static __m512 last_value(const bf16* x) { return widened<0>(_mm512_set1_epi32(x->bits)); }
  static void multiply_add(Sums& sums, __m512 value, Weights w) { sums = _mm512_fmadd_ps(value, w, sums); }
};

}  // namespace

constinit const ProductBodies kAvx512Products = product_bodies<Avx512>();

}  // namespace valora::kernels

#endif
