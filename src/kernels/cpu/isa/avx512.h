// The Vectors (product/product_kernels.h) of AVX-512: 16 outputs in one register, masks for tails.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

struct Avx512Floats {
  // 6 × 4 sums, plus registers for weights and inputs, fill the 32 registers.
  static constexpr int kTileSums = 24;
  using Sums = __m512;

  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

  static Sums zero() { return _mm512_setzero_ps(); }
  static Sums add(Sums a, Sums b) { return _mm512_add_ps(a, b); }
  static Sums scale(float c, Sums a) { return _mm512_mul_ps(_mm512_set1_ps(c), a); }
  static Sums scale_add(float c, Sums a, Sums b) {
    return _mm512_fmadd_ps(_mm512_set1_ps(c), a, b);
  }

  static Sums broadcast(float c) { return _mm512_set1_ps(c); }
  static void add_product(Sums& sums, Sums a, Sums b) { sums = _mm512_fmadd_ps(a, b, sums); }

  static Sums load(const float* p, int64_t count) { return _mm512_maskz_loadu_ps(first(count), p); }
  static Sums load(const bf16* p, int64_t count) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(count), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  static void store_floats(float* p, int64_t count, Sums sums) {
    _mm512_mask_storeu_ps(p, first(count), sums);
  }
  static void store_bits(bf16* p, int64_t count, __m256i bits) {
    _mm256_mask_storeu_epi16(p, first(count), bits);
  }

  static __m512i broadcast_pair(const bf16* x) {
    int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return _mm512_set1_epi32(pair);
  }

  template <bool STREAM>
  static void store_vector(void* p, __m512i bits) {
    if constexpr (STREAM)
      _mm512_stream_si512(static_cast<__m512i*>(p), bits);
    else
      _mm512_storeu_si512(p, bits);
  }
  static void finish_streams() { _mm_sfence(); }
  // Interleaves the bf16 weights of an even and an odd input (in the low half of each lane) in the
  // order of a panel.
  static __m512i paired(__m512i even, __m512i odd) {
    return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  }
  // The I-th inputs' integers of a chunk of 8 bits, less 128.
  template <int I>
  static __m512 bytes_of(const uint8_t* chunk) {
    const __m512i values = _mm512_xor_si512(_mm512_loadu_si512(chunk + I / 4 * 64),
                                            _mm512_set1_epi8(static_cast<char>(0x80)));
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(values, 24 - I % 4 * 8), 24));
  }
  static __m512 even_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static __m512 odd_of(__m512i pairs) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
};

#ifdef __AVX512BF16__
// AVX512-BF16: one vdpbf16ps multiplies a pair of inputs by the weights of 16 outputs.
struct Avx512Bf16 : Avx512Floats {
  static constexpr int kSteps = 1;
  using Element = bf16;
  using Weights = __m512bh;

  static __m256i rounded(Sums sums) { return (__m256i)_mm512_cvtneps_pbh(sums); }
  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static void store(bf16* p, int64_t count, Sums sums) { store_bits(p, count, rounded(sums)); }

  template <int>
  static Weights weights(const bf16* p) {
    return (__m512bh)_mm512_loadu_si512(p);
  }
  template <int>
  static __m512bh value(const bf16* x) {
    return (__m512bh)broadcast_pair(x);
  }
  static __m512bh last_value(const bf16* x) { return (__m512bh)_mm512_set1_epi32(x->bits); }
  static void multiply_add(Sums& sums, __m512bh value, Weights w) {
    sums = _mm512_dpbf16_ps(sums, value, w);
  }

  static constexpr int kIntegerInputs = 2;
  template <int BITS>
  static constexpr int kIntegerOffset = BITS == 4 ? -8 : -128;
  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    if constexpr (BITS == 4)
      return nibbles<I>(chunk);
    else
      return bytes<I>(chunk);
  }
  // Looks up both inputs of a pair; the instruction uses only the low 5 bits of each 16-bit index.
  template <int I>
  static Weights nibbles(const uint8_t* chunk) {
    alignas(64) static constexpr uint16_t kIntegers[32] = {
        0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000,
        0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040,
        0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};
    const __m512i words = _mm512_srli_epi16(_mm512_loadu_si512(chunk), 4 * I);
    return (__m512bh)_mm512_permutexvar_epi16(words, _mm512_load_si512(kIntegers));
  }
  // bf16 represents the integers exactly, as the upper halves of their fp32 values.
  template <int I>
  static Weights bytes(const uint8_t* chunk) {
    const __m512i even = _mm512_castps_si512(bytes_of<2 * I>(chunk)),
                  odd = _mm512_castps_si512(bytes_of<2 * I + 1>(chunk));
    return (__m512bh)_mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(even, 16), odd);
  }
  static void store_decoded(bf16* p, Weights w, Sums zeros, Sums scales, Sums minimums) {
    const auto decoded = [&](Sums integers) {
      return _mm512_fmadd_ps(_mm512_sub_ps(integers, zeros), scales, minimums);
    };
    // The even inputs' 16 outputs, then the odd inputs'.
    const auto apart =
        (__m512i)_mm512_cvtne2ps_pbh(decoded(odd_of((__m512i)w)), decoded(even_of((__m512i)w)));
    alignas(64) static constexpr uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(_mm512_load_si512(kPairs), apart));
  }

  template <bool STREAM>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    const __m512i pairs = _mm512_loadu_si512(w);
    const __m256i even = rounded(scale_add(c, sums[0], even_of(pairs))),
                  odd = rounded(scale_add(c, sums[1], odd_of(pairs)));
    store_vector<STREAM>(out, paired(_mm512_cvtepu16_epi32(even), _mm512_cvtepu16_epi32(odd)));
  }
};
#endif

// bf16 without AVX512-BF16: pairs are widened to fp32, the even input by a shift and the odd one by
// a mask.
struct Avx512 : Avx512Floats {
  static constexpr int kSteps = 2;
  using Element = bf16;
  using Weights = __m512;

  // The bf16 bits, rounded to nearest even, in the low half of each lane.
  static __m512i rounded_lanes(Sums sums) {
    const __m512i bits = _mm512_castps_si512(sums);
    const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i nearest =
        _mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(sums, sums, _CMP_UNORD_Q);
    return _mm512_mask_mov_epi32(_mm512_srli_epi32(nearest, 16), nan, _mm512_set1_epi32(0x7fc0));
  }
  static __m256i rounded(Sums sums) { return _mm512_cvtepi32_epi16(rounded_lanes(sums)); }
  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static void store(bf16* p, int64_t count, Sums sums) { store_bits(p, count, rounded(sums)); }

  template <int STEP>
  static __m512 widened(__m512i pairs) {
    return STEP == 0 ? even_of(pairs) : odd_of(pairs);
  }
  template <int STEP>
  static Weights weights(const bf16* p) {
    return widened<STEP>(_mm512_loadu_si512(p));
  }
  template <int STEP>
  static __m512 value(const bf16* x) {
    return widened<STEP>(broadcast_pair(x));
  }
  static __m512 last_value(const bf16* x) { return widened<0>(_mm512_set1_epi32(x->bits)); }
  static void multiply_add(Sums& sums, __m512 value, Weights w) {
    sums = _mm512_fmadd_ps(value, w, sums);
  }

  template <bool STREAM>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    const __m512i pairs = _mm512_loadu_si512(w);
    store_vector<STREAM>(out, paired(rounded_lanes(scale_add(c, sums[0], even_of(pairs))),
                                     rounded_lanes(scale_add(c, sums[1], odd_of(pairs)))));
  }
};

// fp32: one input per vector of weights.
struct Avx512Float : Avx512Floats {
  static constexpr int kSteps = 1;
  using Element = float;
  using Weights = __m512;

  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  template <int>
  static Weights weights(const float* p) {
    return _mm512_loadu_ps(p);
  }
  template <int>
  static __m512 value(const float* x) {
    return _mm512_set1_ps(*x);
  }
  static void multiply_add(Sums& sums, __m512 value, Weights w) {
    sums = _mm512_fmadd_ps(value, w, sums);
  }

  static constexpr int kIntegerInputs = 1;
  template <int BITS>
  static constexpr int kIntegerOffset = BITS == 4 ? -8 : -128;
  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    if constexpr (BITS == 8) {
      return bytes_of<I>(chunk);
    } else {
      const __m512i words = _mm512_srli_epi32(_mm512_loadu_si512(chunk), Packed<4>::shift(I));
      const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
      return _mm512_permutexvar_ps(words, table);
    }
  }
  static void store_decoded(float* p, Weights w, Sums zeros, Sums scales, Sums minimums) {
    _mm512_storeu_ps(p, _mm512_fmadd_ps(_mm512_sub_ps(w, zeros), scales, minimums));
  }

  template <bool STREAM>
  static void add_to_weights(float* out, const float* w, float c, const Sums* sums) {
    store_vector<STREAM>(out, _mm512_castps_si512(scale_add(c, sums[0], _mm512_loadu_ps(w))));
  }
};

// The KvVectors (attention/byte_sums.h), without VNNI.
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
