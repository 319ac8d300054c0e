// The Vectors (product/product_kernels.h) of the portable kernels: 16 outputs in four compiler
// vectors of four lanes, which the compiler splits if the target has no such registers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/types/bf16.h"

namespace valora::kernels {
namespace {

static_assert(std::endian::native == std::endian::little,
              "a pair's even input is the low half of its 32 bits");

struct PortableFloats {
  // 3 × 1 sums of four registers each leave 4 of x86-64's 16 registers for weights and inputs.
  static constexpr int kTileSums = 3;
  using Four = float __attribute__((vector_size(16)));
  using FourBits = uint32_t __attribute__((vector_size(16)));
  using FourIntegers = int32_t __attribute__((vector_size(16)));
  struct Sums {
    Four part[4];
  };

  static Sums zero() { return {}; }
  static Sums add(Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
    return a;
  }
  static Sums scale(float c, Sums a) {
    for (Four& part : a.part) part *= c;
    return a;
  }
  static Sums scale_add(float c, Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) b.part[i] += c * a.part[i];
    return b;
  }

  static Sums broadcast(float c) {
    Sums sums;
    for (Four& part : sums.part) part = Four{c, c, c, c};
    return sums;
  }
  static void add_product(Sums& sums, const Sums& a, const Sums& b) {
    for (int i = 0; i < 4; ++i) sums.part[i] += a.part[i] * b.part[i];
  }

  template <typename T>
  static Sums load(const T* p, int64_t count) {
    float lanes[16] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = to_float(p[i]);
    return std::bit_cast<Sums>(lanes);
  }
  template <typename T>
  static void store(T* p, int64_t count, Sums sums) {
    float lanes[16];
    std::memcpy(lanes, &sums, sizeof lanes);
    for (int64_t i = 0; i < count; ++i) p[i] = from_float<T>(lanes[i]);
  }

  static void multiply_add(Sums& sums, Four value, const Sums& w) {
    for (int i = 0; i < 4; ++i) sums.part[i] += value * w.part[i];
  }

  static void finish_streams() {}
};

// bf16: pairs are widened to fp32, the even input by a shift and the odd one by a mask.
struct Portable : PortableFloats {
  static constexpr int kSteps = 2;
  using Element = bf16;
  using Weights = Sums;

  template <int STEP>
  static Four widened(FourBits pairs) {
    return (Four)(STEP == 0 ? pairs << 16 : pairs & 0xffff0000u);
  }
  template <int STEP>
  static Weights weights(const bf16* p) {
    Weights w;
    for (int i = 0; i < 4; ++i) {
      FourBits pairs;
      std::memcpy(&pairs, p + 8 * i, sizeof pairs);
      w.part[i] = widened<STEP>(pairs);
    }
    return w;
  }
  template <int STEP>
  static Four value(const bf16* x) {
    uint32_t pair;
    std::memcpy(&pair, x, sizeof pair);
    return widened<STEP>(FourBits{pair, pair, pair, pair});
  }
  static Four last_value(const bf16* x) {
    const uint32_t bits = x->bits;
    return widened<0>(FourBits{bits, bits, bits, bits});
  }

  template <bool>
  static void add_to_weights(bf16* out, const bf16* w, float c, const Sums* sums) {
    bf16 even[16], odd[16];
    store(even, 16, scale_add(c, sums[0], weights<0>(w)));
    store(odd, 16, scale_add(c, sums[1], weights<1>(w)));
    for (int i = 0; i < 16; ++i) out[2 * i] = even[i], out[2 * i + 1] = odd[i];
  }
};

// fp32: one input per vector of weights.
struct PortableFloat : PortableFloats {
  static constexpr int kSteps = 1;
  using Element = float;
  using Weights = Sums;

  template <int>
  static Weights weights(const float* p) {
    return load(p, 16);
  }
  template <int>
  static Four value(const float* x) {
    return Four{*x, *x, *x, *x};
  }

  // Nibbles keep their offset, which the sums of the inputs correct: this saves an instruction.
  static constexpr int kIntegerInputs = 1, kNibbleOffset = 0;
  template <int I>
  static Weights nibbles(const uint8_t* chunk) {
    Weights w;
    for (int i = 0; i < 4; ++i) {
      FourBits words;
      std::memcpy(&words, chunk + 16 * i, sizeof words);
      const auto integers = (FourIntegers)(words >> (I / 2 * 4 + I % 2 * 16) & 15u);
      w.part[i] = __builtin_convertvector(integers, Four);
    }
    return w;
  }
  template <int I>
  static Weights bytes(const uint8_t* chunk) {
    Weights w;
    for (int i = 0; i < 4; ++i) {
      FourBits words;
      std::memcpy(&words, chunk + 64 * (I / 4) + 16 * i, sizeof words);
      const auto integers = (FourIntegers)(words >> (8 * (I % 4)) & 255u) - 128;
      w.part[i] = __builtin_convertvector(integers, Four);
    }
    return w;
  }
  static void store_decoded(float* p, Weights w, const Sums& zeros, const Sums& scales,
                            const Sums& minimums) {
    for (int i = 0; i < 4; ++i)
      w.part[i] = (w.part[i] - zeros.part[i]) * scales.part[i] + minimums.part[i];
    std::memcpy(p, &w, sizeof w);
  }

  template <bool>
  static void add_to_weights(float* out, const float* w, float c, const Sums* sums) {
    store(out, 16, scale_add(c, sums[0], load(w, 16)));
  }
};

}  // namespace
}  // namespace valora::kernels
