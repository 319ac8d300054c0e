#include "kernels/tiles/tile.h"

#include <algorithm>

#include "kernels/cpu/isa/isa.h"

namespace valora::kernels {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;

bool is_tile_of(Isa isa, const CpuTile& tile) {
  return tile.rows >= 1 && tile.rows <= kMostTileRows &&
         std::ranges::count(kTilePanels, tile.panels) == 1 &&
         std::ranges::count(kTileChains, tile.chains) == 1 &&
         tile.rows * tile.panels * tile.chains <= tile_sums(isa);
}

// Tested with the largest possible product, whose sizes limit no tile.
bool is_tile_of(ProductShape shape, const CudaTile& tile) {
  shape.n = shape.k = kLargest;
  return shape.kind != ProductKind::kDense && effective_cuda_tile(shape, tile) == tile;
}

}  // namespace

bool is_tile_of(const ProductShape& shape, const Tile& tile) {
  const Device device = shape.processor.device();
  if (const CpuTile* cpu = std::get_if<CpuTile>(&tile))
    return device == Device::kCpu && is_tile_of(shape.processor.isa(), *cpu);
  return device == Device::kCuda && is_tile_of(shape, std::get<CudaTile>(tile));
}

Tile effective_tile(const ProductShape& shape, const Tile& tile) {
  if (const CpuTile* cpu = std::get_if<CpuTile>(&tile)) return effective_tile(shape, *cpu);
  return effective_cuda_tile(shape, std::get<CudaTile>(tile));
}

CpuTile effective_tile(const ProductShape& s, const CpuTile& tile) {
  CpuTile result = tile;
  const int64_t panels = std::max<int64_t>(1, (s.n + 15) / 16),
                rows = std::max<uint8_t>(1, tile.rows);
  // As in product_kernels.h, a group wider than the product is replaced by the next narrower one.
  while (result.panels > panels)
    result.panels = result.panels == 8 ? 4 : result.panels == 2 ? 1 : 2;
  const int64_t m = std::max<int64_t>(1, s.m), blocks = (m + rows - 1) / rows;
  result.rows = static_cast<uint8_t>((m + blocks - 1) / blocks);
  const int64_t vectors = std::max<int64_t>(1, s.k / (s.float32 ? 1 : 2));
  while (result.chains > vectors) result.chains = static_cast<uint8_t>(result.chains / 2);
  return result;
}

}  // namespace valora::kernels
