// Computes the tile of a shape that has no entry in the table.
#pragma once

#include "kernels/tiles/tile.h"

namespace valora::kernels {

// Always valid for shape.processor (is_tile_of).
Tile formula_tile(const ProductShape& shape);
// shape.processor must be a CPU.
CpuTile cpu_formula_tile(const ProductShape& shape);

}  // namespace valora::kernels
