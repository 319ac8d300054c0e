// The KvVectors (attention/byte_sums.h) of the portable kernels.
#pragma once

#include <array>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/vectors_portable.h"

namespace valora::kernels {
namespace {

// The value of every e4m3 byte, divided by 256.
consteval std::array<float, 256> fp8_numbers() {
  std::array<float, 256> numbers{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    float size = static_cast<float>(exponent == 0 ? fraction : 8 + fraction) / (1 << 18);
    for (int i = 1; i < exponent; ++i) size *= 2;
    size *= 2;
    numbers[static_cast<size_t>(code)] = code & 0x80 ? -size : size;
  }
  return numbers;
}
inline constexpr std::array<float, 256> kFp8Numbers = fp8_numbers();

struct PortableKv : PortableFloat {
  static constexpr int kRows = 3;
  template <KvFormat>
  static constexpr RowCode kCode = RowCode::kFloats;

  template <KvFormat FORMAT, int I>
  static Sums numbers(const uint8_t* quad) {
    Sums sums;
    for (int i = 0; i < 4; ++i) {
      const uint8_t* const four = quad + 16 * i;
      if constexpr (FORMAT == KvFormat::kInt8) {
        FourBits bytes;
        std::memcpy(&bytes, four, sizeof bytes);
        sums.part[i] = __builtin_convertvector((FourIntegers)(bytes << (24 - 8 * I)) >> 24, Four);
      } else {
        sums.part[i] = Four{kFp8Numbers[four[I]], kFp8Numbers[four[4 + I]],
                            kFp8Numbers[four[8 + I]], kFp8Numbers[four[12 + I]]};
      }
    }
    return sums;
  }
  static void store_pairs(bf16* p, const Sums& even, const Sums& odd) {
    for (int i = 0; i < 4; ++i) {
      const FourBits joined = (FourBits)even.part[i] >> 16 | ((FourBits)odd.part[i] & 0xffff0000u);
      std::memcpy(p + 8 * i, &joined, sizeof joined);
    }
  }
  template <KvFormat FORMAT>
  static void decode(const uint8_t* quad, bf16* panels) {
    store_pairs(panels, numbers<FORMAT, 0>(quad), numbers<FORMAT, 1>(quad));
    store_pairs(panels + 32, numbers<FORMAT, 2>(quad), numbers<FORMAT, 3>(quad));
  }
};

}  // namespace
}  // namespace valora::kernels
