// Benchmarks low-rank products of mixed adapters on one linear, against the methods of other
// systems and against our kernel with the best single tile (VaLoRA figures 17 and 18).
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

inline constexpr const char* kSingleTile = "single_tile";

// First the shapes used to search for the best single tile, then the measured ones.
std::vector<Shape> atmm_shapes(bool quick);

}  // namespace valora::bench
