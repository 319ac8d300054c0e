// Adapters merged into the linears of a model (VaLoRA §4.4.1): base weights are read, a shadow is
// written.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> merge_shapes(bool quick);

}  // namespace valora::bench
