#include "kernels/tiles/tile_table.h"

#include <algorithm>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/kernel_set.h"

namespace valora::kernels {
namespace {

// Independent sums that hide the FMA latency.
constexpr int kBusySums = 12;
// Up to this many rows, one pass over the weights beats several passes with a better tile shape.
constexpr int kOnePassRows = 8;
// A product should have at least this many groups of panels, for load balance.
constexpr int64_t kFewGroups = 14;
// Another rule applies to expands from kManyRows rows, and to dense products up to kMostRows rows.
constexpr int64_t kManyRows = 32, kMostRows = 96;

CpuTile tile_of(int64_t rows, int panels, int chains) {
  return {static_cast<uint8_t>(rows), static_cast<uint8_t>(panels), static_cast<uint8_t>(chains)};
}

// Adds chains while registers are left, sums are too few and k is large enough.
void add_chains(const ProductShape& s, CpuTile& tile) {
  const int sums = tile_sums(s.processor.isa());
  const int64_t vectors = (s.k + 1) / (s.float32 ? 1 : 2);
  while (tile.rows * tile.panels * tile.chains < kBusySums &&
         tile.rows * tile.panels * tile.chains * 2 <= sums && tile.chains < 8 &&
         vectors / tile.chains >= 16)
    tile.chains = static_cast<uint8_t>(tile.chains * 2);
}

// The widest groups of panels that leave registers for the rows.
CpuTile wide_tile(const ProductShape& s) {
  const int sums = tile_sums(s.processor.isa());
  const int64_t panels = (s.n + 15) / 16, one_pass = std::min(kOnePassRows, sums);
  CpuTile tile = tile_of(s.m <= one_pass ? std::max<int64_t>(1, s.m) : std::min(6, sums), 1, 1);
  for (int width : {8, 4, 2}) {  // powers of two divide the pieces of a projection
    const bool even = s.kind != ProductKind::kDense || panels / width >= kFewGroups;
    if (width * tile.rows > sums || width > panels || (width > 4 && !even)) continue;
    tile.panels = static_cast<uint8_t>(width);
    break;
  }
  add_chains(s, tile);
  return tile;
}

// Products with a small k: prologue and epilogue dominate, so at most two panels share a row's
// inputs.
CpuTile expand_tile(const ProductShape& s) {
  const int64_t m = std::max<int64_t>(1, s.m);
  const int sums = tile_sums(s.processor.isa());
  if (s.processor.isa() == Isa::kPortable && s.float32)
    return tile_of(1, 1, 2);  // the compiler spills larger tiles
  if (sums < 24)
    return m == 1 && s.n > 16 ? tile_of(1, 2, std::max(1, sums / 4 * 2))
                              : tile_of(std::min<int64_t>(m, sums), 1, 1);
  if (s.float32 && m > kOnePassRows) return tile_of(6, 1, 2);
  const int panels = s.n > 16 ? 2 : 1;
  if (m > kManyRows) return tile_of(4, panels, 2);
  return tile_of(m <= 6 ? m : m <= kOnePassRows ? 4 : 6, panels, 1);
}

}  // namespace

Tile formula_tile(const ProductShape& s) {
  if (s.processor.device() == Device::kCuda) return cuda_formula_tile(s);
  return cpu_formula_tile(s);
}

CpuTile cpu_formula_tile(const ProductShape& s) {
  if (s.processor.isa() == Isa::kAmx && s.kind == ProductKind::kDense && !s.float32 &&
      s.m > kVectorRows)
    return tile_of(8, s.n > 16 ? 2 : 1, 1);  // the panels of cpu/isa/amx.cc, which has its own rows
  const bool many_registers = tile_sums(s.processor.isa()) >= 24;
  if (s.kind == ProductKind::kExpand) return expand_tile(s);
  // Each block of rows reads the panels again, so few blocks matter more than wide groups.
  if (s.kind == ProductKind::kDense && many_registers && !s.float32 && s.m > kOnePassRows &&
      s.m < kMostRows)
    return s.m <= 12 && s.n > 16 ? tile_of(s.m, 2, 1) : tile_of(8, 1, 2);
  return wide_tile(s);
}

}  // namespace valora::kernels
