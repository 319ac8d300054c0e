#include "kernels/tiles/tile.h"

#include <algorithm>

namespace valora::kernels {

int tile_sums(Isa isa) {
  switch (isa) {
    case Isa::kAvx512Bf16:
    case Isa::kAvx512: return 24;
    case Isa::kAvx2: return 5;
    case Isa::kPortable: break;
  }
  return 3;
}

int64_t shared_memory(CudaArch arch) {
  switch (arch) {
    case CudaArch::kSm80: return 163 << 10;
    case CudaArch::kSm90a: break;
  }
  return 227 << 10;
}

int64_t shared_memory(const CudaTile& tile, int64_t element) {
  return int64_t{tile.stages} * (tile.block_m + tile.block_n) * tile.block_k * element;
}

namespace {

bool is_tile_of(Isa isa, const CpuTile& tile) {
  return tile.rows >= 1 && tile.rows <= kMostTileRows &&
         std::ranges::count(kTilePanels, tile.panels) == 1 &&
         std::ranges::count(kTileChains, tile.chains) == 1 &&
         tile.rows * tile.panels * tile.chains <= tile_sums(isa);
}

bool is_tile_of(CudaArch arch, bool float32, const CudaTile& tile) {
  const auto multiple = [](int value, int of) { return value > 0 && value % of == 0; };
  return tile.warps_m >= 1 && tile.warps_n >= 1 && tile.warps_m * tile.warps_n <= 32 &&
         multiple(tile.block_m, 16 * tile.warps_m) && multiple(tile.block_n, 8 * tile.warps_n) &&
         multiple(tile.block_k, 16) && tile.stages >= 1 && tile.split_k >= 1 &&
         shared_memory(tile, float32 ? 4 : 2) <= shared_memory(arch);
}

}  // namespace

bool is_tile_of(Processor processor, bool float32, const Tile& tile) {
  if (const CpuTile* cpu = std::get_if<CpuTile>(&tile))
    return processor.device() == Device::kCpu && is_tile_of(processor.isa(), *cpu);
  return processor.device() == Device::kCuda &&
         is_tile_of(processor.arch(), float32, std::get<CudaTile>(tile));
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
