// Tiles that were measured, by the shapes they were measured at (VaLoRA §4.3.2, Alg. 2).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/tiles/tile.h"
#include "kernels/tiles/tile_key.h"

namespace valora::kernels {

struct TileEntry {
  TileKey key;
  Tile tile;
};

// How far apart two shapes of one family are, in octaves: tokens and rank count double, sizes of
// the model half.
double tile_distance(const ProductShape& a, const ProductShape& b);
// Beyond it the formula knows better.
inline constexpr double kNearEnough = 4;

// Immutable once made.
class TileTable {
 public:
  TileTable() = default;
  // Of entries with one key the last one counts.
  explicit TileTable(std::vector<TileEntry> entries);
  // A table that answers every CPU's shape with this tile, as far as its instruction set has it:
  // static tiling.
  static TileTable single(CpuTile tile);

  size_t size() const { return entries_.size(); }
  std::span<const TileEntry> entries() const { return entries_; }  // by key
  std::optional<Tile> exact(const TileKey& key) const;
  // Of the nearest entry of the same family, the first by key where two are; none within
  // kNearEnough: nothing.
  std::optional<Tile> nearest(const TileKey& key) const;
  // Exact, else nearest, else formula_tile of the key's shape.
  Tile choose(const TileKey& key) const;

 private:
  std::vector<TileEntry> entries_;
  std::optional<CpuTile> single_;
};

}  // namespace valora::kernels
