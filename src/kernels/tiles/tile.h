// A product's tile: how many sums stay in registers while the inputs are walked through.
#pragma once

#include <cstdint>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

struct Tile {
  uint8_t rows = 1;    // of x, at most: m rows are cut into even blocks of no more than these
  uint8_t panels = 1;  // of 16 outputs each: 1, 2, 4 or 8
  uint8_t chains =
      1;  // sums an output has, over every chains-th input, added at the end: 1, 2, 4 or 8

  friend bool operator==(const Tile&, const Tile&) = default;
};

inline constexpr int kMostTileRows = 12;
inline constexpr uint8_t kTilePanels[] = {1, 2, 4, 8};
inline constexpr uint8_t kTileChains[] = {1, 2, 4, 8};

// Sums that the instruction set keeps in registers (kTileSums of the vectors_*.h).
int tile_sums(Isa isa);
// Whether the instruction set's kernels have it.
bool is_tile_of(Isa isa, const Tile& tile);
// The tile that runs where `tile` is asked for: rows as even blocks of m leave them, no panels or
// chains that the product has not. Tiles of one effect on a shape are equal after it.
Tile effective_tile(const ProductShape& shape, const Tile& tile);

}  // namespace valora::kernels
