// AVX2: 16 outputs in two registers. Vectors: product/product_kernels.h; ByteVectors:
// product/byte_kernels.h; KvVectors: attention/byte_sums.h.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

struct Avx2Floats {
  // 5 × 1 sums of two registers each leave 6 of 16 registers for weights and inputs. With 6 × 1,
  // g++ spills.
  static constexpr int kTileSums = 5;
  struct Sums {
    __m256 low, high;  // outputs 0–7 and 8–15
  };

  static Sums zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Sums add(Sums a, Sums b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Sums scale(float c, Sums a) {
    const __m256 v = _mm256_set1_ps(c);
    return {_mm256_mul_ps(v, a.low), _mm256_mul_ps(v, a.high)};
  }
  static Sums scale_add(float c, Sums a, Sums b) {
    multiply_add(b, _mm256_set1_ps(c), a);
    return b;
  }

  static Sums broadcast(float c) { return {_mm256_set1_ps(c), _mm256_set1_ps(c)}; }
  static void add_product(Sums& sums, Sums a, Sums b) {
    sums.low = _mm256_fmadd_ps(a.low, b.low, sums.low);
    sums.high = _mm256_fmadd_ps(a.high, b.high, sums.high);
  }

  // Partial vectors go through a buffer of 16 elements.
  template <typename T>
  static Sums load(const T* p, int64_t count) {
    if (count == 16) return load_whole(p);
    T whole[16] = {};
    std::memcpy(whole, p, count * sizeof(T));
    return load_whole(whole);
  }
  template <typename T>
  static void store(T* p, int64_t count, Sums sums) {
    if (count == 16) return store_whole(p, sums);
    T whole[16];
    store_whole(whole, sums);
    std::memcpy(p, whole, count * sizeof(T));
  }

  static Sums load_whole(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Sums load_whole(const bf16* p) { return {eight(p), eight(p + 8)}; }
  static __m256 eight(const bf16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return widened<0>(_mm256_cvtepu16_epi32(bits));
  }
  static void store_whole(float* p, Sums sums) {
    _mm256_storeu_ps(p, sums.low);
    _mm256_storeu_ps(p + 8, sums.high);
  }
  static void store_whole(bf16* p, Sums sums) {
    const __m256i packed =
        _mm256_packus_epi32(rounded(sums.low), rounded(sums.high));  // 0–3, 8–11, 4–7, 12–15
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  // The bf16 bits, rounded to nearest even, in the low half of each lane.
  static __m256i rounded(__m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i nearest =
        _mm256_add_epi32(bits, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(nearest, 16), _mm256_set1_epi32(0x7fc0), nan);
  }

  template <int STEP>
  static __m256 widened(__m256i pairs) {
    if constexpr (STEP == 0) return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    return _mm256_castsi256_ps(
        _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static void multiply_add(Sums& sums, __m256 value, Sums w) {
    sums.low = _mm256_fmadd_ps(value, w.low, sums.low);
    sums.high = _mm256_fmadd_ps(value, w.high, sums.high);
  }

  template <bool STREAM>
  static void store_half(void* p, __m256i bits) {
    if constexpr (STREAM)
      _mm256_stream_si256(static_cast<__m256i*>(p), bits);
    else
      _mm256_storeu_si256(static_cast<__m256i*>(p), bits);
  }
  static void finish_streams() { _mm_sfence(); }
};

// bf16: pairs are widened to fp32, the even input by a shift and the odd one by a mask.
struct Avx2 : Avx2Floats {
  static constexpr int kSteps = 2;
  using Element = bf16;
  using Weights = Sums;

  template <int STEP>
  static Weights weights(const bf16* p) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    return {widened<STEP>(_mm256_loadu_si256(pairs)), widened<STEP>(_mm256_loadu_si256(pairs + 1))};
  }
  template <int STEP>
  static __m256 value(const bf16* x) {
    int32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return widened<STEP>(_mm256_set1_epi32(pair));
  }
  static __m256 last_value(const bf16* x) { return widened<0>(_mm256_set1_epi32(x->bits)); }

  static __m256i paired(__m256 even, __m256 odd) {
    return _mm256_or_si256(rounded(even), _mm256_slli_epi32(rounded(odd), 16));
  }
  template <bool STREAM>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    const Sums even = scale_add(c, sums[0], weights<0>(w)),
               odd = scale_add(c, sums[1], weights<1>(w));
    store_half<STREAM>(out, paired(even.low, odd.low));
    store_half<STREAM>(out + 16, paired(even.high, odd.high));
  }
};

// fp32: one input per vector of weights.
struct Avx2Float : Avx2Floats {
  static constexpr int kSteps = 1;
  using Element = float;
  using Weights = Sums;

  template <int>
  static Weights weights(const float* p) {
    return load_whole(p);
  }
  template <int>
  static __m256 value(const float* x) {
    return _mm256_set1_ps(*x);
  }

  static constexpr int kIntegerInputs = 1;
  // Nibbles keep their offset, which the sums of the inputs correct: this saves an instruction.
  template <int BITS>
  static constexpr int kIntegerOffset = BITS == 4 ? 0 : -128;
  template <int BIT>
  static __m256 eight_nibbles(const __m256i* words) {
    __m256i nibbles = _mm256_loadu_si256(words);
    if constexpr (BIT > 0) nibbles = _mm256_srli_epi32(nibbles, BIT);
    if constexpr (BIT < 28) nibbles = _mm256_and_si256(nibbles, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(nibbles);
  }
  template <int I>
  static __m256 eight_bytes(const uint8_t* words) {
    const __m256i values =
        _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)),
                         _mm256_set1_epi8(static_cast<char>(0x80)));
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(values, 24 - I % 4 * 8), 24));
  }
  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    if constexpr (BITS == 4) {
      constexpr int kBit = Packed<4>::shift(I);
      const auto* words = reinterpret_cast<const __m256i*>(chunk);
      return {eight_nibbles<kBit>(words), eight_nibbles<kBit>(words + 1)};
    } else {
      const uint8_t* words = chunk + I / 4 * 64;
      return {eight_bytes<I>(words), eight_bytes<I>(words + 32)};
    }
  }
  static void store_decoded(float* p, Weights w, Sums zeros, Sums scales, Sums minimums) {
    store_whole(p,
                {_mm256_fmadd_ps(_mm256_sub_ps(w.low, zeros.low), scales.low, minimums.low),
                 _mm256_fmadd_ps(_mm256_sub_ps(w.high, zeros.high), scales.high, minimums.high)});
  }

  template <bool STREAM>
  static void add_to_weights(float* out, const float* w, float c, const Sums* sums) {
    const Sums sum = scale_add(c, sums[0], load_whole(w));
    store_half<STREAM>(out, _mm256_castps_si256(sum.low));
    store_half<STREAM>(out + 8, _mm256_castps_si256(sum.high));
  }
};

// Integer sums of 16 outputs.
struct Avx2Ints {
  __m256i low, high;  // outputs 0–7 and 8–15

  static Avx2Ints of(int32_t sum) { return {_mm256_set1_epi32(sum), _mm256_set1_epi32(sum)}; }
  Avx2Floats::Sums floats() const { return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)}; }
};

// The ByteVectors.
// 4 bits: vpmaddubsw adds pairs of products in 16 bits, where eight of them fit without overflow,
// after a start of up to 4 times the sum of all inputs, too. 8 bits: inputs and weights have 16
// bits for vpmaddwd; the even bytes of the weights are widened by a mask and the odd ones by a
// shift.
struct Avx2Bytes : Avx2Floats {
  static constexpr int kTileSums = 5;
  static constexpr int kBlockSums = 5;
  static constexpr bool kStarts = true;
  template <int BITS>
  static constexpr int64_t kMostSpan = BITS == 4 ? 32 : 1 << 14;
  template <int BITS>
  static constexpr int kInputBytes = BITS == 4 ? 1 : 2;
  template <int>
  static constexpr int kOffset = 0;
  using Ints = Avx2Ints;
  using Weights = Ints;

  static Ints no_ints() { return Ints::of(0); }
  template <int BITS>
  static Ints ints_from(int32_t sum) {
    if constexpr (BITS == 8) return Ints::of(sum);
    // Half of it, a multiple of Packed<4>::kMiddle, in each of an output's two sums.
    const __m256i half = _mm256_set1_epi16(static_cast<int16_t>(sum / 2));
    return {half, half};
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    const auto* words = reinterpret_cast<const __m256i*>(chunk + (BITS == 8 ? STEP / 2 * 64 : 0));
    const auto half = [](const __m256i* p) __attribute__((always_inline)) {
      const __m256i bits = _mm256_loadu_si256(p);
      if constexpr (BITS == 4)
        return _mm256_and_si256(STEP == 0 ? bits : _mm256_srli_epi16(bits, 4),
                                _mm256_set1_epi8(15));
      else
        return STEP % 2 == 0 ? _mm256_and_si256(bits, _mm256_set1_epi16(255))
                             : _mm256_srli_epi16(bits, 8);
    };
    return {half(words), half(words + 1)};
  }
  static __m256i inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
  }
  template <int BITS>
  static void dot(Ints& ints, Weights w, __m256i x) {
    if constexpr (BITS == 4) {
      ints.low = _mm256_add_epi16(ints.low, _mm256_maddubs_epi16(w.low, x));
      ints.high = _mm256_add_epi16(ints.high, _mm256_maddubs_epi16(w.high, x));
    } else {
      ints.low = _mm256_add_epi32(ints.low, _mm256_madd_epi16(w.low, x));
      ints.high = _mm256_add_epi32(ints.high, _mm256_madd_epi16(w.high, x));
    }
    // Otherwise g++ adds the products of several steps first, and runs out of registers.
    asm("" : "+x"(ints.low), "+x"(ints.high));
  }
  template <int BITS>
  static Sums floats_of(Ints ints) {
    if constexpr (BITS == 4) {
      const __m256i ones = _mm256_set1_epi16(1);
      ints = {_mm256_madd_epi16(ints.low, ones), _mm256_madd_epi16(ints.high, ones)};
    }
    return ints.floats();
  }
};

// The KvVectors.
struct Avx2Kv : Avx2Float {
  static constexpr int kRows = 5;

  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kWords : RowCode::kFloats;

  static __m256i half_quad(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  template <KvFormat FORMAT, int I>
  static __m256 numbers_of_half(__m256i x) {
    if constexpr (I < 3) x = _mm256_slli_epi32(x, 24 - 8 * I);
    if constexpr (FORMAT == KvFormat::kInt8) return _mm256_cvtepi32_ps(_mm256_srai_epi32(x, 24));
    // e4m3 in the upper bits of fp32, less 120 in the exponent.
    x = _mm256_and_si256(_mm256_srai_epi32(x, 4), _mm256_set1_epi32(static_cast<int>(0x87f00000u)));
    return _mm256_mul_ps(_mm256_castsi256_ps(x), _mm256_set1_ps(0x1p112f));
  }
  template <KvFormat FORMAT, int I>
  static Sums numbers(const uint8_t* quad) {
    return {numbers_of_half<FORMAT, I>(half_quad(quad)),
            numbers_of_half<FORMAT, I>(half_quad(quad + 32))};
  }
  static void store_pairs(bf16* p, Sums even, Sums odd) {
    const auto joined = [](__m256 e, __m256 o) {
      return _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(e), 16),
                                _mm256_castps_si256(o), 0xaa);
    };
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), joined(even.low, odd.low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), joined(even.high, odd.high));
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    store_pairs(panels, numbers<FORMAT, 0>(quad), numbers<FORMAT, 1>(quad));
    store_pairs(panels + 32, numbers<FORMAT, 2>(quad), numbers<FORMAT, 3>(quad));
  }

  using Ints = Avx2Ints;
  using Words = Ints;
  template <int I>
  static __m256i words_of_half(__m256i x) {
    return _mm256_srai_epi16(I == 0 ? _mm256_slli_epi16(x, 8) : x, 8);
  }
  template <int I>
  static Words words(const uint8_t* quad) {
    return {words_of_half<I>(half_quad(quad)), words_of_half<I>(half_quad(quad + 32))};
  }
  static Ints no_ints() { return Ints::of(0); }
  static void dot(Ints& ints, Words w, int32_t two) {
    const __m256i x = _mm256_set1_epi32(two);
    ints.low = _mm256_add_epi32(ints.low, _mm256_madd_epi16(w.low, x));
    ints.high = _mm256_add_epi32(ints.high, _mm256_madd_epi16(w.high, x));
  }
  static Sums floats_of(Ints ints) { return ints.floats(); }
};

}  // namespace
}  // namespace valora::kernels
