// The Vectors (product/product_kernels.h), ByteVectors (product/byte_kernels.h) and KvVectors
// (attention/byte_sums.h) of the portable kernels: 16 outputs in four compiler
// vectors of four lanes, which the compiler splits if the target has no such registers.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/instantiate.h"
#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

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

  static constexpr int kIntegerInputs = 1;
  // Nibbles keep their offset, which the sums of the inputs correct: this saves an instruction.
  template <int BITS>
  static constexpr int kIntegerOffset = BITS == 4 ? 0 : -128;
  template <int BITS, int I>
  static Weights integers(const uint8_t* chunk) {
    constexpr int kWordInputs = Packed<BITS>::kWordInputs;
    constexpr int kShift = Packed<BITS>::shift(I % kWordInputs);
    Weights w;
    for (int i = 0; i < 4; ++i) {
      FourBits words;
      std::memcpy(&words, chunk + 64 * (I / kWordInputs) + 16 * i, sizeof words);
      const auto values = (FourIntegers)(words >> kShift & ((1u << BITS) - 1));
      w.part[i] = __builtin_convertvector(values + kIntegerOffset<BITS>, Four);
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
  template <int>
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

IsaKernels portable_kernels() {
  return {kernels_of<Portable, PortableFloat>(), kernels_of<PortableFloat>(),
          byte_kernels_of<PortableBytes>(), byte_attention_kernels_of<PortableKv>()};
}

}  // namespace valora::kernels
