// Benchmark of adapters whose panels lie in blocks of a memory pool: the cost relative to adapters
// that each have one allocation.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> paged_adapter_shapes(bool quick);

}  // namespace valora::bench
