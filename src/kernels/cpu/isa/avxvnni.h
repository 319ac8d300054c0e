// AVX-VNNI: the VNNI of CPUs without AVX-512. Two vpdpbusd sum four products of bytes for 16
// outputs.
#pragma once

#include "kernels/cpu/isa/avx2.h"
#include "kernels/cpu/isa/lanes.h"

namespace valora::kernels {
namespace {

struct AvxVnniInts {
  __m256i low, high;  // outputs 0–7 and 8–15

  static AvxVnniInts of(int32_t sum) { return {_mm256_set1_epi32(sum), _mm256_set1_epi32(sum)}; }
  Avx2Floats::Sums floats() const { return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)}; }
};

// The ByteVectors: inputs times the unsigned weights of 16 outputs.
struct AvxVnniBytes : Avx2Floats {
  static constexpr int kTileSums = 6;
  static constexpr int kBlockSums = 0;
  static constexpr bool kStarts = true;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int>
  static constexpr int kOffset = 0;
  using Ints = AvxVnniInts;
  using Weights = AvxVnniInts;

  static Ints no_ints() { return Ints::of(0); }
  static Ints ints_from(int32_t sum) { return Ints::of(sum); }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    const auto* words = reinterpret_cast<const __m256i*>(chunk + (BITS == 4 ? 0 : 64 * STEP));
    const auto half = [](const __m256i* p) __attribute__((always_inline)) {
      const __m256i bits = _mm256_loadu_si256(p);
      if constexpr (BITS == 8) return bits;
      return _mm256_and_si256(STEP == 0 ? bits : _mm256_srli_epi16(bits, 4), _mm256_set1_epi8(15));
    };
    return {half(words), half(words + 1)};
  }
  static __m256i inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
  }
  template <int>
  static void dot(Ints& ints, Weights w, __m256i x) {
    ints.low = _mm256_dpbusd_avx_epi32(ints.low, w.low, x);
    ints.high = _mm256_dpbusd_avx_epi32(ints.high, w.high, x);
  }
  template <int>
  static Sums floats_of(Ints ints) {
    return ints.floats();
  }
};

// The KvVectors.
struct AvxVnniKv : Avx2Kv {
  // Upper and lower sums of 3 rows take 12 of the 16 registers.
  static constexpr int kRows = 3;
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kBytes : RowCode::kFloats;

  using Ints = AvxVnniInts;
  using Quads = AvxVnniInts;
  static Quads load_quads(const uint8_t* quad) { return {half_quad(quad), half_quad(quad + 32)}; }
  static Quads offset_quads(const uint8_t* quad) {
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
    return {_mm256_xor_si256(half_quad(quad), offset),
            _mm256_xor_si256(half_quad(quad + 32), offset)};
  }
  static void store_bytes(uint8_t* p, LaneBits bits) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<uint8_t>(bits[i]);
  }
  static int32_t sum_of_ints(LaneBits ints) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += ints[i];
    return sum;
  }
  static Ints ints_from(int32_t sum) { return Ints::of(sum); }
  static void dot_unsigned(Ints& ints, Quads quads, int32_t four) {
    const __m256i x = _mm256_set1_epi32(four);
    ints.low = _mm256_dpbusd_avx_epi32(ints.low, quads.low, x);
    ints.high = _mm256_dpbusd_avx_epi32(ints.high, quads.high, x);
  }
  static void dot_signed(Ints& ints, Quads quads, int32_t four) {
    const __m256i x = _mm256_set1_epi32(four);
    ints.low = _mm256_dpbusd_avx_epi32(ints.low, x, quads.low);
    ints.high = _mm256_dpbusd_avx_epi32(ints.high, x, quads.high);
  }
  static Sums floats_of(Ints upper, Ints lower) {
    return Ints{_mm256_add_epi32(_mm256_slli_epi32(upper.low, 8), lower.low),
                _mm256_add_epi32(_mm256_slli_epi32(upper.high, 8), lower.high)}
        .floats();
  }
  static Sums floats_of(Ints ints) { return ints.floats(); }
};

}  // namespace
}  // namespace valora::kernels
