// Chooses the tile of a product (VaLoRA §4.3, Alg. 2): a pure function of its shape and the current
// table. Never fails: uses the exact entry, or else the nearest one, or else a formula.
#pragma once

#include <memory>

#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// The current table; never null, initially empty. use_tiles() is for start-up and measurements. It
// is thread-safe: concurrent products use tiles of either the old or the new table.
std::shared_ptr<const TileTable> tiles_in_use();
void use_tiles(std::shared_ptr<const TileTable> table);

// tiles_in_use()->choose(TileKey::of(shape)), cached per thread (a few nanoseconds per hit).
// shape.processor must be a CPU or a GPU, respectively.
CpuTile choose_cpu_tile(const ProductShape& shape);
CudaTile choose_cuda_tile(const ProductShape& shape);

}  // namespace valora::kernels
