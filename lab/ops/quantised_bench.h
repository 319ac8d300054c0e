// Benchmarks linears with integer weights that are cold, against the same linears in bf16.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> quantised_shapes(bool quick);

}  // namespace valora::bench
