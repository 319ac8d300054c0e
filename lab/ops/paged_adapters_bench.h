// Benchmarks adapters whose panels are in blocks of a memory pool, relative to adapters with one
// allocation each.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> paged_adapter_shapes(bool quick);

}  // namespace valora::bench
