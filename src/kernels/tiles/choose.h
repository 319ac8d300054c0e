// Which tile a product takes (VaLoRA §4.3 and Alg. 2): a pure function of its shape and
// of the table in use. Never a failure: an exact entry, else the nearest one, else a formula.
#pragma once

#include <memory>

#include "kernels/tiles/formula.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// The table in use; never null, empty at first. Setting one is for the start and for measurements;
// products that run meanwhile take either table's tiles.
std::shared_ptr<const TileTable> tiles_in_use();
void use_tiles(std::shared_ptr<const TileTable> table);

// tiles_in_use()->choose(TileKey::of(shape)), a few nanoseconds where a thread asks again. The
// shape's processor must be one of the device.
CpuTile choose_cpu_tile(const ProductShape& shape);
CudaTile choose_cuda_tile(const ProductShape& shape);

}  // namespace valora::kernels
