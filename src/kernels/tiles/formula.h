// The tile of a shape that no table knows.
#pragma once

#include "kernels/tiles/tile.h"

namespace valora::kernels {

// Always one of the processor's tiles.
Tile formula_tile(const ProductShape& shape);
// Of a CPU's shape.
CpuTile cpu_formula_tile(const ProductShape& shape);

}  // namespace valora::kernels
