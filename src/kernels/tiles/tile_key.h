// A product shape as a 128-bit key for the tile table (VaLoRA §5).
#pragma once

#include <cstdint>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// Token counts in the same bucket share a tile. Up to 16, each count is its own bucket; above, the
// bucket is the nearest 2^i or 1.5 · 2^i. Counts are clamped to [1, kMostTokens].
inline constexpr int64_t kMostTokens = int64_t{1} << 20;
int64_t token_bucket(int64_t tokens);
// The next larger bucket.
int64_t next_bucket(int64_t bucket);

inline constexpr int64_t kMostSize = (int64_t{1} << 40) - 1;

// Sizes are clamped to their fields, so every shape has a key.
struct TileKey {
  // Bits, from the highest: kind 4, device 4, float32 1, instruction set or architecture 7,
  // bucket 24, upper part of n 24.
  uint64_t high = 0;
  uint64_t low = 0;  // lower part of n 24, k 40

  static TileKey of(const ProductShape& shape);
  ProductShape shape() const;  // m is the bucket
  // Kind, processor and dtype. Shapes of different families are never near each other.
  uint64_t family() const { return high >> 48; }
  uint64_t hash() const;
  friend bool operator==(const TileKey&, const TileKey&) = default;
};
static_assert(sizeof(TileKey) == 16);

}  // namespace valora::kernels
