// AVX-512 with VNNI: one vpdpbusd sums four products of bytes for 16 outputs.
#pragma once

#include "kernels/cpu/isa/avx512.h"
#include "kernels/cpu/isa/lanes.h"

namespace valora::kernels {
namespace {

// The ByteVectors (product/byte_kernels.h): inputs times the unsigned weights of 16 outputs.
struct VnniBytes : Avx512Floats {
  // 12 integer and 12 fp32 sums fit into registers.
  static constexpr int kTileSums = 12;
  // 8 integer and 2 × 8 fp32 sums fit into registers.
  static constexpr int kBlockSums = 8;
  static constexpr bool kStarts = true;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int>
  static constexpr int kOffset = 0;
  using Ints = __m512i;
  using Weights = __m512i;

  static void store(float* p, int64_t count, Sums sums) { store_floats(p, count, sums); }
  static Ints no_ints() { return _mm512_setzero_si512(); }
  template <int>
  static Ints ints_from(int32_t sum) {
    return _mm512_set1_epi32(sum);
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    if constexpr (BITS == 4) {
      const __m512i words = _mm512_loadu_si512(chunk);
      return _mm512_and_si512(STEP == 0 ? words : _mm512_srli_epi16(words, 4),
                              _mm512_set1_epi8(15));
    }
    return _mm512_loadu_si512(chunk + 64 * STEP);
  }
  static __m512i inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
  }
  template <int>
  static void dot(Ints& ints, Weights w, __m512i x) {
    ints = _mm512_dpbusd_epi32(ints, w, x);
  }
  template <int>
  static Sums floats_of(Ints ints) {
    return _mm512_cvtepi32_ps(ints);
  }
};

// The KvVectors (attention/byte_sums.h).
struct VnniKv : Avx512Kv {
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kBytes : RowCode::kFloats;

  using Quads = __m512i;
  static Quads offset_quads(const uint8_t* quad) {
    return _mm512_xor_si512(load_quads(quad), _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  static void store_bytes(uint8_t* p, LaneBits bits) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8((__m512i)bits));
  }
  static int32_t sum_of_ints(LaneBits ints) { return _mm512_reduce_add_epi32((__m512i)ints); }
  static Ints ints_from(int32_t sum) { return _mm512_set1_epi32(sum); }
  static void dot_unsigned(Ints& ints, Quads quads, int32_t four) {
    ints = _mm512_dpbusd_epi32(ints, quads, _mm512_set1_epi32(four));
  }
  static void dot_signed(Ints& ints, Quads quads, int32_t four) {
    ints = _mm512_dpbusd_epi32(ints, _mm512_set1_epi32(four), quads);
  }
  using Avx512Kv::floats_of;
  static Sums floats_of(Ints upper, Ints lower) {
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower));
  }
};

}  // namespace
}  // namespace valora::kernels
