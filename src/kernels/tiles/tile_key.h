// A product's shape as 128 bits: what a table of tiles is looked up by (VaLoRA §5).
#pragma once

#include <cstdint>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// Token counts that share a tile: each up to 16 alone, above the nearest of 2^i and 1.5 · 2^i. Out
// of range they are clamped to [1, kMostTokens].
inline constexpr int64_t kMostTokens = int64_t{1} << 20;
int64_t token_bucket(int64_t tokens);
// The bucket after this one.
int64_t next_bucket(int64_t bucket);

inline constexpr int64_t kMostSize = (int64_t{1} << 40) - 1;

// Sizes out of range are clamped into it: a key always exists.
struct TileKey {
  uint64_t high = 0;  // kind 4, device 4, float32 1, instruction set or architecture 7, bucket
                      // 24, upper 24 bits of n
  uint64_t low = 0;   // lower 24 bits of n, k 40

  static TileKey of(const ProductShape& shape);
  ProductShape shape() const;  // m is the bucket
  // Of op, processor and dtype: what two shapes must share to be near each other.
  uint64_t family() const { return high >> 48; }
  uint64_t hash() const;
  friend bool operator==(const TileKey&, const TileKey&) = default;
};
static_assert(sizeof(TileKey) == 16);

}  // namespace valora::kernels
