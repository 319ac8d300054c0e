// NEON of ARMv8.2 with dot products: 16 outputs in four registers. Vectors:
// product/product_kernels.h; ByteVectors: product/byte_kernels.h; KvVectors: attention/byte_sums.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

struct NeonFloats {
  // 6 × 1 sums of four registers each leave 8 of 32 registers for weights and inputs.
  static constexpr int kTileSums = 6;
  struct Sums {
    float32x4_t part[4];
  };

  static Sums zero() { return broadcast(0); }
  static Sums broadcast(float c) {
    const float32x4_t v = vdupq_n_f32(c);
    return {v, v, v, v};
  }
  static Sums add(Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) a.part[i] = vaddq_f32(a.part[i], b.part[i]);
    return a;
  }
  static Sums scale(float c, Sums a) {
    for (float32x4_t& part : a.part) part = vmulq_n_f32(part, c);
    return a;
  }
  static Sums scale_add(float c, Sums a, Sums b) {
    multiply_add(b, vdupq_n_f32(c), a);
    return b;
  }
  static void add_product(Sums& sums, Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) sums.part[i] = vfmaq_f32(sums.part[i], a.part[i], b.part[i]);
  }
  static void multiply_add(Sums& sums, float32x4_t value, Sums w) {
    for (int i = 0; i < 4; ++i) sums.part[i] = vfmaq_f32(sums.part[i], value, w.part[i]);
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

  static Sums load_whole(const float* p) {
    return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
  }
  static Sums load_whole(const bf16* p) {
    const uint16x8_t low = bits_of(p), high = bits_of(p + 8);
    const auto widened = [](uint16x4_t bits) {
      return as_floats(vshlq_n_u32(vmovl_u16(bits), 16));
    };
    return {widened(vget_low_u16(low)), widened(vget_high_u16(low)), widened(vget_low_u16(high)),
            widened(vget_high_u16(high))};
  }
  static void store_whole(float* p, Sums sums) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, sums.part[i]);
  }
  static void store_whole(bf16* p, Sums sums) {
    for (int i = 0; i < 4; ++i) {
      const uint16x4_t bits = vmovn_u32(rounded(sums.part[i]));
      std::memcpy(p + 4 * i, &bits, sizeof bits);
    }
  }

  static float32x4_t as_floats(uint32x4_t bits) { return vreinterpretq_f32_u32(bits); }
  static uint16x8_t bits_of(const bf16* p) {
    uint16x8_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return bits;
  }
  // The bf16 bits, rounded to nearest even, in the low half of each lane.
  static uint32x4_t rounded(float32x4_t v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t nearest = vaddq_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7fff)));
    return vbslq_u32(vceqq_f32(v, v), vshrq_n_u32(nearest, 16), vdupq_n_u32(0x7fc0));
  }
  static uint32x4_t paired(float32x4_t even, float32x4_t odd) {
    return vsliq_n_u32(rounded(even), rounded(odd), 16);
  }

  template <int STEP>
  static float32x4_t widened(uint32x4_t pairs) {
    if constexpr (STEP == 0) return as_floats(vshlq_n_u32(pairs, 16));
    return as_floats(vandq_u32(pairs, vdupq_n_u32(0xffff0000u)));
  }
  // The pairs of inputs of 16 outputs, in the form of a panel.
  template <int STEP>
  static Sums inputs_of_pairs(const bf16* p) {
    Sums w;
    for (int i = 0; i < 4; ++i)
      w.part[i] = widened<STEP>(vreinterpretq_u32_u16(bits_of(p + 8 * i)));
    return w;
  }
  static void store_pairs(bf16* p, int part, uint32x4_t pairs) {
    std::memcpy(p + 8 * part, &pairs, sizeof pairs);
  }
  static void add_to_pairs(bf16* out, const bf16* w, float c, const Sums* sums) {
    const Sums even = scale_add(c, sums[0], inputs_of_pairs<0>(w)),
               odd = scale_add(c, sums[1], inputs_of_pairs<1>(w));
    for (int i = 0; i < 4; ++i) store_pairs(out, i, paired(even.part[i], odd.part[i]));
  }

  static void finish_streams() {}
};

// bf16: pairs are widened to fp32, the even input by a shift and the odd one by a mask.
struct Neon : NeonFloats {
  static constexpr int kSteps = 2;
  using Element = bf16;
  using Weights = Sums;

  template <int STEP>
  static Weights weights(const bf16* p) {
    return inputs_of_pairs<STEP>(p);
  }
  template <int STEP>
  static float32x4_t value(const bf16* x) {
    uint32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return widened<STEP>(vdupq_n_u32(pair));
  }
  static float32x4_t last_value(const bf16* x) { return widened<0>(vdupq_n_u32(x->bits)); }
  template <bool>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    add_to_pairs(out, w, c, sums);
  }
};

// fp32: one input per vector of weights.
struct NeonFloat : NeonFloats {
  static constexpr int kSteps = 1;
  using Element = float;
  using Weights = Sums;

  template <int>
  static Weights weights(const float* p) {
    return load_whole(p);
  }
  template <int>
  static float32x4_t value(const float* x) {
    return vdupq_n_f32(*x);
  }

  static constexpr int kIntegerInputs = 1;
  // Nibbles keep their offset, which the sums of the inputs correct: this saves an instruction.
  template <int BITS>
  static constexpr int kIntegerOffset = BITS == 4 ? 0 : -128;
  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    Weights w;
    for (int i = 0; i < 4; ++i) {
      if constexpr (BITS == 4) {
        constexpr int kBit = Packed<4>::shift(I);
        uint32x4_t nibbles = vreinterpretq_u32_u8(vld1q_u8(chunk + 16 * i));
        if constexpr (kBit > 0) nibbles = vshrq_n_u32(nibbles, kBit);
        if constexpr (kBit < 28) nibbles = vandq_u32(nibbles, vdupq_n_u32(15));
        w.part[i] = vcvtq_f32_u32(nibbles);
      } else {
        const uint8x16_t bytes = veorq_u8(vld1q_u8(chunk + I / 4 * 64 + 16 * i), vdupq_n_u8(0x80));
        w.part[i] = vcvtq_f32_s32(byte_of<I % 4>(vreinterpretq_s32_u8(bytes)));
      }
    }
    return w;
  }
  // The I-th byte of each lane, with its sign.
  template <int I>
  static int32x4_t byte_of(int32x4_t lanes) {
    if constexpr (I < 3) lanes = vshlq_n_s32(lanes, 24 - 8 * I);
    return vshrq_n_s32(lanes, 24);
  }
  static void store_decoded(float* p, Weights w, Sums zeros, Sums scales, Sums minimums) {
    for (int i = 0; i < 4; ++i)
      w.part[i] = vfmaq_f32(minimums.part[i], vsubq_f32(w.part[i], zeros.part[i]), scales.part[i]);
    store_whole(p, w);
  }

  template <bool>
  static void add_to_weights(float* out, const float* w, float c, const Sums* sums) {
    store_whole(out, scale_add(c, sums[0], load_whole(w)));
  }
};

// Integer sums of 16 outputs.
struct NeonInts {
  int32x4_t part[4];

  static NeonInts of(int32_t sum) {
    const int32x4_t v = vdupq_n_s32(sum);
    return {v, v, v, v};
  }
  NeonFloats::Sums floats() const {
    return {vcvtq_f32_s32(part[0]), vcvtq_f32_s32(part[1]), vcvtq_f32_s32(part[2]),
            vcvtq_f32_s32(part[3])};
  }
};

// The ByteVectors: one sdot sums four products of signed bytes for four outputs. Bytes of weights
// are stored unsigned, so they get an offset.
struct NeonBytes : NeonFloats {
  static constexpr int kBlockSums = 0;
  static constexpr bool kStarts = false;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int BITS>
  static constexpr int kOffset = BITS == 4 ? 0 : -128;
  using Ints = NeonInts;
  struct Weights {
    uint8x16_t part[4];
  };

  static Ints no_ints() { return Ints::of(0); }
  template <int BITS, int STEP>
  static Weights unsigned_weights(const uint8_t* chunk) {
    Weights w;
    for (int i = 0; i < 4; ++i) {
      w.part[i] = vld1q_u8(chunk + (BITS == 4 ? 0 : 64 * STEP) + 16 * i);
      if constexpr (BITS == 4)
        w.part[i] = STEP == 0 ? vandq_u8(w.part[i], vdupq_n_u8(15)) : vshrq_n_u8(w.part[i], 4);
    }
    return w;
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    Weights w = unsigned_weights<BITS, STEP>(chunk);
    if constexpr (BITS == 8)
      for (uint8x16_t& part : w.part) part = veorq_u8(part, vdupq_n_u8(0x80));
    return w;
  }
  static int8x16_t inputs(const uint8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  template <int>
  static void dot(Ints& ints, Weights w, int8x16_t x) {
    for (int i = 0; i < 4; ++i)
      ints.part[i] = vdotq_s32(ints.part[i], vreinterpretq_s8_u8(w.part[i]), x);
  }
  template <int>
  static Sums floats_of(Ints ints) {
    return ints.floats();
  }
};

// The KvVectors.
struct NeonKv : NeonFloat {
  static constexpr int kRows = 6;
  template <KvFormat>
  static constexpr RowCode kCode = RowCode::kFloats;

  template <KvFormat FORMAT, int I>
  static float32x4_t numbers_of_part(int32x4_t x) {
    if constexpr (FORMAT == KvFormat::kInt8) return vcvtq_f32_s32(byte_of<I>(x));
    if constexpr (I < 3) x = vshlq_n_s32(x, 24 - 8 * I);
    // e4m3 in the upper bits of fp32, less 120 in the exponent.
    const uint32x4_t bits =
        vandq_u32(vreinterpretq_u32_s32(vshrq_n_s32(x, 4)), vdupq_n_u32(0x87f00000u));
    return vmulq_n_f32(as_floats(bits), 0x1p112f);
  }
  template <KvFormat FORMAT, int I>
  static Sums numbers(const uint8_t* quad) {
    Sums sums;
    for (int i = 0; i < 4; ++i)
      sums.part[i] = numbers_of_part<FORMAT, I>(vreinterpretq_s32_u8(vld1q_u8(quad + 16 * i)));
    return sums;
  }
  // The numbers are exact in bf16.
  static void store_exact(bf16* p, Sums even, Sums odd) {
    for (int i = 0; i < 4; ++i)
      store_pairs(
          p, i,
          vsriq_n_u32(vreinterpretq_u32_f32(odd.part[i]), vreinterpretq_u32_f32(even.part[i]), 16));
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    store_exact(panels, numbers<FORMAT, 0>(quad), numbers<FORMAT, 1>(quad));
    store_exact(panels + 32, numbers<FORMAT, 2>(quad), numbers<FORMAT, 3>(quad));
  }
};

}  // namespace
}  // namespace valora::kernels
