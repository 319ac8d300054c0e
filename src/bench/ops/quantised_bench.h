// Benchmark of linears with weights in integers and cold weights, against the same linears in bf16.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> quantised_shapes(bool quick);

}  // namespace valora::bench
