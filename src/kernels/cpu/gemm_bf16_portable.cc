// Any CPU: four lanes of the compiler's own vector type, which every baseline has or does without.
#include <bit>
#include <cstring>

#include "kernels/cpu/product_tiles.h"

namespace valora::kernels {
namespace {

static_assert(std::endian::native == std::endian::little, "a pair's even input is the low half of its 32 bits");

struct Portable {
  // 3 × 1 sums of four registers each leave four of x86-64's 16 to feed them.
  static constexpr int kTileSums = 3, kRows = 3, kOnePassRows = 3, kSteps = 2;
  using Four = float __attribute__((vector_size(16)));
  using FourBits = uint32_t __attribute__((vector_size(16)));
  struct Sums {
    Four part[4];
  };
  using Weights = Sums;

  static Sums zero() { return {}; }
  static Sums add(Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
    return a;
  }
  static Sums scale_add(float c, Sums a, Sums b) {
    for (int i = 0; i < 4; ++i) b.part[i] += c * a.part[i];
    return b;
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

  template <int STEP>
  static Four widened(FourBits pairs) { return (Four)(STEP == 0 ? pairs << 16 : pairs & 0xffff0000u); }
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
  static void multiply_add(Sums& sums, Four value, const Weights& w) {
    for (int i = 0; i < 4; ++i) sums.part[i] += value * w.part[i];
  }
};

}  // namespace

constinit const ProductBodies kPortableProducts = product_bodies<Portable>();

}  // namespace valora::kernels
