#ifdef __x86_64__

// AVX-VNNI: the VNNI of CPUs without AVX-512. Two vpdpbusd sum four products of bytes for 16
// outputs.
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/avx2.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/lanes.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {
namespace {

// The ByteVectors: inputs times the unsigned weights of 16 outputs.
struct AvxVnniBytes : Avx2Bytes {
  static constexpr int kTileSums = 6;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int>
  static Ints ints_from(int32_t sum) {
    return Ints::of(sum);
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    if constexpr (BITS == 4) return Avx2Bytes::weights<4, STEP>(chunk);
    const auto* words = reinterpret_cast<const __m256i*>(chunk + 64 * STEP);
    return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
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
struct AvxVnniKv : Avx2Kv, LaneBytes {
  // Upper and lower sums of 3 rows take 12 of the 16 registers.
  static constexpr int kRows = 3;
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kBytes : RowCode::kFloats;

  using Quads = Ints;
  static Quads load_quads(const uint8_t* quad) { return {half_quad(quad), half_quad(quad + 32)}; }
  static Quads offset_quads(const uint8_t* quad) {
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(0x80));
    return {_mm256_xor_si256(half_quad(quad), offset),
            _mm256_xor_si256(half_quad(quad + 32), offset)};
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
  using Avx2Kv::floats_of;
};

}  // namespace

void add_avxvnni(IsaKernels& kernels) {
  kernels.bytes = byte_kernels_of<AvxVnniBytes>();
  kernels.byte_attention = byte_attention_kernels_of<AvxVnniKv>();
}

}  // namespace valora::kernels

#endif
