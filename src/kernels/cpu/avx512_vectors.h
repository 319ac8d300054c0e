// What the two AVX-512 bodies share: 16 fp32 outputs in one register, masks for the tails.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/bf16.h"

namespace valora::kernels {
namespace {

struct Avx512Floats {
  // 6 × 4 sums and the registers that feed them fill the 32 there are.
  static constexpr int kTileSums = 24, kRows = 6, kOnePassRows = 8;
  using Sums = __m512;

  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

  static Sums zero() { return _mm512_setzero_ps(); }
  static Sums add(Sums a, Sums b) { return _mm512_add_ps(a, b); }
  static Sums scale_add(float c, Sums a, Sums b) { return _mm512_fmadd_ps(_mm512_set1_ps(c), a, b); }

  static Sums load(const float* p, int64_t count) { return _mm512_maskz_loadu_ps(first(count), p); }
  static Sums load(const bf16* p, int64_t count) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(count), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  static void store_floats(float* p, int64_t count, Sums sums) { _mm512_mask_storeu_ps(p, first(count), sums); }
  static void store_bits(bf16* p, int64_t count, __m256i bits) { _mm256_mask_storeu_epi16(p, first(count), bits); }

  static __m512i broadcast_pair(const bf16* x) {
    int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
};

}  // namespace
}  // namespace valora::kernels
