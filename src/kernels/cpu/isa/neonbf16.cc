#ifdef __aarch64__

// NEON with products of bf16 and of unsigned by signed bytes (BF16 and I8MM of ARMv8.6).
#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/lanes.h"
#include "kernels/cpu/isa/neon.h"

namespace valora::kernels {
namespace {

// One bfdot multiplies the pairs of inputs of four outputs.
struct NeonBf16 : NeonFloats {
  static constexpr int kSteps = 1;
  using Element = bf16;
  struct Weights {
    bfloat16x8_t part[4];
  };

  static bfloat16x8_t as_bf16(uint32x4_t pairs) { return vreinterpretq_bf16_u32(pairs); }
  template <int>
  static Weights weights(const bf16* p) {
    Weights w;
    std::memcpy(&w, p, sizeof w);
    return w;
  }
  template <int>
  static bfloat16x8_t value(const bf16* x) {
    uint32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return as_bf16(vdupq_n_u32(pair));
  }
  static bfloat16x8_t last_value(const bf16* x) { return as_bf16(vdupq_n_u32(x->bits)); }
  using NeonFloats::multiply_add;
  static void multiply_add(Sums& sums, bfloat16x8_t value, Weights w) {
    for (int i = 0; i < 4; ++i) sums.part[i] = vbfdotq_f32(sums.part[i], w.part[i], value);
  }
  template <bool>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    add_to_pairs(out, w, c, sums);
  }
};

// One usdot takes weights as they are stored.
struct NeonMixedBytes : NeonBytes {
  static constexpr bool kStarts = true;
  template <int>
  static constexpr int kOffset = 0;

  template <int>
  static Ints ints_from(int32_t sum) {
    return Ints::of(sum);
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    return unsigned_weights<BITS, STEP>(chunk);
  }
  template <int>
  static void dot(Ints& ints, Weights w, int8x16_t x) {
    for (int i = 0; i < 4; ++i) ints.part[i] = vusdotq_s32(ints.part[i], w.part[i], x);
  }
};

struct NeonMixedKv : NeonKv, LaneBytes {
  // Upper and lower sums of 3 rows take 24 of the 32 registers.
  static constexpr int kRows = 3;
  template <KvFormat FORMAT>
  static constexpr RowCode kCode = FORMAT == KvFormat::kInt8 ? RowCode::kBytes : RowCode::kFloats;

  using Ints = NeonInts;
  struct Quads {
    uint8x16_t part[4];
  };
  static Quads load_quads(const uint8_t* quad) {
    return {vld1q_u8(quad), vld1q_u8(quad + 16), vld1q_u8(quad + 32), vld1q_u8(quad + 48)};
  }
  static Quads offset_quads(const uint8_t* quad) {
    Quads quads = load_quads(quad);
    for (uint8x16_t& part : quads.part) part = veorq_u8(part, vdupq_n_u8(0x80));
    return quads;
  }
  static Ints ints_from(int32_t sum) { return Ints::of(sum); }
  static void dot_unsigned(Ints& ints, Quads quads, int32_t four) {
    const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four));
    for (int i = 0; i < 4; ++i) ints.part[i] = vusdotq_s32(ints.part[i], quads.part[i], x);
  }
  static void dot_signed(Ints& ints, Quads quads, int32_t four) {
    const uint8x16_t x = vreinterpretq_u8_s32(vdupq_n_s32(four));
    for (int i = 0; i < 4; ++i)
      ints.part[i] = vusdotq_s32(ints.part[i], x, vreinterpretq_s8_u8(quads.part[i]));
  }
  static Sums floats_of(Ints upper, Ints lower) {
    for (int i = 0; i < 4; ++i)
      lower.part[i] = vaddq_s32(vshlq_n_s32(upper.part[i], 8), lower.part[i]);
    return lower.floats();
  }
  static Sums floats_of(Ints ints) { return ints.floats(); }
};

}  // namespace

void add_neonbf16(IsaKernels& kernels) {
  kernels.of_bf16 = kernels_of<NeonBf16, NeonFloat>();
  kernels.bytes = byte_kernels_of<NeonMixedBytes>();
  kernels.byte_attention = byte_attention_kernels_of<NeonMixedKv>();
}

}  // namespace valora::kernels

#endif
