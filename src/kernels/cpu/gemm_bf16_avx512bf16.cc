// AVX-512 with BF16: one vdpbf16ps multiplies a pair of inputs with 16 outputs.
#ifdef __x86_64__

#include "kernels/cpu/avx512_vectors.h"
#include "kernels/cpu/product_tiles.h"

namespace valora::kernels {
namespace {

struct Avx512Bf16 : Avx512Floats {
  static constexpr int kSteps = 1;
  using Weights = __m512bh;

  static __m256i rounded(Sums sums) { return (__m256i)_mm512_cvtneps_pbh(sums); }
  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static void store(bf16* p, int64_t count, Sums sums) { store_bits(p, count, rounded(sums)); }

  template <int>
  static Weights weights(const bf16* p) { return (__m512bh)_mm512_loadu_si512(p); }
  template <int>
  static __m512bh value(const bf16* x) { return (__m512bh)broadcast_pair(x); }
  static __m512bh last_value(const bf16* x) { return (__m512bh)_mm512_set1_epi32(x->bits); }
  static void multiply_add(Sums& sums, __m512bh value, Weights w) { sums = _mm512_dpbf16_ps(sums, value, w); }
};

}  // namespace

constinit const ProductBodies kAvx512Bf16Products = product_bodies<Avx512Bf16>();

}  // namespace valora::kernels

#endif
