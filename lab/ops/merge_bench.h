// Benchmarks merging adapters into a model's linears (VaLoRA §4.4.1): reads the base weights,
// writes a shadow copy.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> merge_shapes(bool quick);

}  // namespace valora::bench
