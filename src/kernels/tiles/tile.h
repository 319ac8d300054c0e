// The tile of a product: the part that a CPU thread or CUDA thread block computes at a time, and
// how.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/tiles/cuda_tile.h"
#include "kernels/tiles/shape.h"

namespace valora::kernels {

// The sums that a thread keeps in registers while it iterates over k.
struct CpuTile {
  uint8_t rows = 1;    // most rows of x per block; m is divided into blocks of nearly equal size
  uint8_t panels = 1;  // panels of 16 outputs: 1, 2, 4 or 8
  uint8_t chains = 1;  // independent partial sums per output: 1, 2, 4 or 8

  friend bool operator==(const CpuTile&, const CpuTile&) = default;
};

using Tile = std::variant<CpuTile, CudaTile>;

inline constexpr int kMostTileRows = 12;
inline constexpr uint8_t kTilePanels[] = {1, 2, 4, 8};
inline constexpr uint8_t kTileChains[] = {1, 2, 4, 8};
// True if the processor's kernels support the tile for this kind of product. False for a tile of
// another device.
bool is_tile_of(const ProductShape& shape, const Tile& tile);
// The tile that actually runs if `tile` is requested. On CPUs: rows after dividing m into nearly
// equal blocks, and at most the product's panels and chains. On GPUs: the nearest compiled tile,
// limited to the product. Tiles with the same effect on a shape become equal.
CpuTile effective_tile(const ProductShape& shape, const CpuTile& tile);
Tile effective_tile(const ProductShape& shape, const Tile& tile);

}  // namespace valora::kernels
