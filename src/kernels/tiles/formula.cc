#include "kernels/tiles/formula.h"

#include <algorithm>

namespace valora::kernels {
namespace {

// Enough independent sums to hide a multiplication's latency.
constexpr int kBusySums = 12;
// Rows up to which one pass over the weights beats the better shape of several.
constexpr int kOnePassRows = 8;
// Groups of panels that a product should have at least, so that the threads' shares come out even.
constexpr int64_t kFewGroups = 14;

}  // namespace

Tile formula_tile(const ProductShape& s) {
  const int sums = tile_sums(s.isa);
  const int64_t panels = (s.n + 15) / 16, vectors = (s.k + 1) / (s.float32 ? 1 : 2);
  Tile tile;
  const int one_pass = std::min(kOnePassRows, sums);
  tile.rows = static_cast<uint8_t>(s.m <= one_pass ? std::max<int64_t>(1, s.m) : std::min(6, sums));
  for (int width : {8, 4, 3, 2}) {
    const bool even = s.kind != ProductKind::kDense || panels / width >= kFewGroups;
    if (width * tile.rows > sums || width > panels || (width > 4 && !even)) continue;
    tile.panels = static_cast<uint8_t>(width);
    break;
  }
  while (tile.rows * tile.panels * tile.chains < kBusySums && tile.rows * tile.panels * tile.chains * 2 <= sums &&
         tile.chains < 8 && vectors / tile.chains >= 16)
    tile.chains = static_cast<uint8_t>(tile.chains * 2);
  return tile;
}

}  // namespace valora::kernels
