// The KvVectors (attention/byte_attention_kernels.h) of the portable kernels.
#pragma once

#include <array>

#include "kernels/cpu/isa/vectors_portable.h"
#include "kernels/types/kv_format.h"

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
  static constexpr bool kIntegers = false;

  template <KvFormat FORMAT>
  static void numbers(const uint8_t* p, Sums& even, Sums& odd) {
    for (int i = 0; i < 4; ++i) {
      if constexpr (FORMAT == KvFormat::kInt8) {
        uint16_t pairs[4];
        std::memcpy(pairs, p + 8 * i, sizeof pairs);
        const FourBits bytes{pairs[0], pairs[1], pairs[2], pairs[3]};
        even.part[i] = __builtin_convertvector((FourIntegers)(bytes << 24) >> 24, Four);
        odd.part[i] = __builtin_convertvector((FourIntegers)(bytes << 16) >> 24, Four);
      } else {
        const uint8_t* four = p + 8 * i;
        even.part[i] = Four{kFp8Numbers[four[0]], kFp8Numbers[four[2]], kFp8Numbers[four[4]],
                            kFp8Numbers[four[6]]};
        odd.part[i] = Four{kFp8Numbers[four[1]], kFp8Numbers[four[3]], kFp8Numbers[four[5]],
                           kFp8Numbers[four[7]]};
      }
    }
  }
  static void store_pairs(bf16* p, const Sums& even, const Sums& odd) {
    for (int i = 0; i < 4; ++i) {
      const FourBits joined = (FourBits)even.part[i] >> 16 | ((FourBits)odd.part[i] & 0xffff0000u);
      std::memcpy(p + 8 * i, &joined, sizeof joined);
    }
  }
};

}  // namespace
}  // namespace valora::kernels
