// A table of measured tiles by product shape (VaLoRA §4.3.2, Alg. 2).
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

// The distance between two shapes of one family, in octaves. Tokens and rank are weighted by two,
// the model's sizes by half.
double tile_distance(const ProductShape& a, const ProductShape& b);
// Beyond this distance, the formula is the better choice.
inline constexpr double kNearEnough = 4;

// Immutable.
class TileTable {
 public:
  TileTable() = default;
  // Of several entries with the same key, the last one wins.
  explicit TileTable(std::vector<TileEntry> entries);
  // Static tiling: the same tile for every CPU shape, reduced to what the instruction set supports.
  static TileTable single(CpuTile tile);

  size_t size() const { return entries_.size(); }
  std::span<const TileEntry> entries() const { return entries_; }  // sorted by key
  std::optional<Tile> exact(const TileKey& key) const;
  // The tile of the nearest entry of the same family within kNearEnough; on a tie, the lower key.
  std::optional<Tile> nearest(const TileKey& key) const;
  // The exact entry, or else the nearest, or else formula_tile() of the key's shape.
  Tile choose(const TileKey& key) const;

 private:
  std::vector<TileEntry> entries_;
  std::optional<CpuTile> single_;
};

// The tile of a shape that has no entry in the table. Always valid for shape.processor
// (is_tile_of).
Tile formula_tile(const ProductShape& shape);
// shape.processor must be a CPU.
CpuTile cpu_formula_tile(const ProductShape& shape);

}  // namespace valora::kernels
