#include "kernels/tiles/tile_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/cpu/isa/isa.h"

namespace valora::kernels {
namespace {

bool before(const TileKey& a, const TileKey& b) {
  return std::tie(a.high, a.low) < std::tie(b.high, b.low);
}

double octaves(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(std::max<int64_t>(1, a)) /
                            static_cast<double>(std::max<int64_t>(1, b))));
}

// Reduces the tile to what the instruction set supports.
CpuTile cut_down(CpuTile tile, Isa isa) {
  const int sums = tile_sums(isa);
  while (tile.chains > 1 && tile.rows * tile.panels * tile.chains > sums)
    tile.chains = static_cast<uint8_t>(tile.chains / 2);
  while (tile.panels > 1 && tile.panels > sums)
    tile.panels = tile.panels == 8 ? 4 : tile.panels == 2 ? 1 : 2;
  tile.rows = static_cast<uint8_t>(
      std::clamp(sums / (tile.panels * tile.chains), 1, std::max<int>(1, tile.rows)));
  return tile;
}

}  // namespace

double tile_distance(const ProductShape& a, const ProductShape& b) {
  constexpr double kTwice = 2, kHalf = 0.5;
  const bool ranks_are_k = is_expand(a.kind) || a.kind == ProductKind::kMerge;
  const double n = is_shrink(a.kind) ? kTwice : kHalf, k = ranks_are_k ? kTwice : kHalf;
  return kTwice * octaves(a.m, b.m) + n * octaves(a.n, b.n) + k * octaves(a.k, b.k);
}

TileTable::TileTable(std::vector<TileEntry> entries) : entries_(std::move(entries)) {
  std::ranges::stable_sort(entries_, before, &TileEntry::key);
  // In reverse, so that the last of several entries with equal keys is kept.
  const auto keep =
      std::unique(entries_.rbegin(), entries_.rend(),
                  [](const TileEntry& a, const TileEntry& b) { return a.key == b.key; });
  entries_.erase(entries_.begin(), keep.base());
}

TileTable TileTable::single(CpuTile tile) {
  TileTable table;
  table.single_ = tile;
  return table;
}

std::optional<Tile> TileTable::exact(const TileKey& key) const {
  const auto found = std::ranges::lower_bound(entries_, key, before, &TileEntry::key);
  if (found == entries_.end() || found->key != key) return std::nullopt;
  return found->tile;
}

std::optional<Tile> TileTable::nearest(const TileKey& key) const {
  const TileKey first{key.family() << 48, 0};
  const ProductShape shape = key.shape();
  std::optional<Tile> best;
  double least = kNearEnough;
  for (auto entry = std::ranges::lower_bound(entries_, first, before, &TileEntry::key);
       entry != entries_.end() && entry->key.family() == key.family(); ++entry) {
    const double distance = tile_distance(shape, entry->key.shape());
    if (distance > least || (best && distance == least)) continue;
    least = distance;
    best = entry->tile;
  }
  return best;
}

Tile TileTable::choose(const TileKey& key) const {
  const ProductShape shape = key.shape();
  if (single_ && shape.processor.device() == Device::kCpu)
    return cut_down(*single_, shape.processor.isa());
  if (const auto tile = exact(key)) return *tile;
  if (const auto tile = nearest(key)) return *tile;
  return formula_tile(shape);
}

}  // namespace valora::kernels
