// The ByteVectors (product/byte_kernels.h) of the portable kernels.
#pragma once

#include "kernels/cpu/isa/vectors_portable.h"

namespace valora::kernels {
namespace {

struct PortableBytes : PortableFloats {
  static constexpr int kBlockSums = 2;
  static constexpr bool kStarts = true;
  template <int>
  static constexpr int64_t kMostSpan = 1 << 14;
  template <int>
  static constexpr int kInputBytes = 1;
  template <int>
  static constexpr int kOffset = 0;
  struct Ints {
    FourIntegers part[4];
  };
  struct Weights {
    FourIntegers input[4][4];  // [input][part]
  };
  struct Inputs {
    int32_t input[4];
  };

  static Ints no_ints() { return {}; }
  static Ints ints_from(int32_t sum) {
    Ints ints;
    for (FourIntegers& part : ints.part) part = FourIntegers{} + sum;
    return ints;
  }
  template <int BITS, int STEP>
  static Weights weights(const uint8_t* chunk) {
    Weights w;
    for (int part = 0; part < 4; ++part) {
      FourBits words;
      std::memcpy(&words, chunk + (BITS == 4 ? 0 : 64 * STEP) + 16 * part, sizeof words);
      if constexpr (BITS == 4) words = words >> (4 * STEP) & 0x0f0f0f0fu;
      for (int i = 0; i < 4; ++i) w.input[i][part] = (FourIntegers)(words >> (8 * i) & 255u);
    }
    return w;
  }
  static Inputs inputs(const uint8_t* x) {
    Inputs four;
    for (int i = 0; i < 4; ++i) four.input[i] = static_cast<int8_t>(x[i]);
    return four;
  }
  template <int>
  static void dot(Ints& ints, const Weights& w, const Inputs& x) {
    for (int i = 0; i < 4; ++i)
      for (int part = 0; part < 4; ++part) ints.part[part] += w.input[i][part] * x.input[i];
  }
  template <int>
  static Sums floats_of(const Ints& ints) {
    Sums sums;
    for (int i = 0; i < 4; ++i) sums.part[i] = __builtin_convertvector(ints.part[i], Four);
    return sums;
  }
};

}  // namespace
}  // namespace valora::kernels
