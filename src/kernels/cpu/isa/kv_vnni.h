// The KvVectors (attention/byte_sums.h) of AVX-512 with VNNI: one vpdpbusd sums four products of
// bytes for 16 outputs.
#pragma once

#include "kernels/cpu/isa/kv_avx512.h"
#include "kernels/cpu/isa/lanes.h"

namespace valora::kernels {
namespace {

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
