// What mixed adapters add to a linear, against the ways of others and against our kernel with the
// best one tile (VaLoRA figures 17 and 18).
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

inline constexpr const char* kSingleTile = "single_tile";

// First those that find the best single tile, then those that measure.
std::vector<Shape> atmm_shapes(bool quick);

}  // namespace valora::bench
