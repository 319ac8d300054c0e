// Benchmarks elementwise and row-wise operations against ATen.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> elementwise_shapes(bool quick);

}  // namespace valora::bench
