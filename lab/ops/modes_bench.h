// Benchmarks the linears of whole steps in the three modes (VaLoRA §4.4): cost of mixed and merged
// adapters relative to the base model.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> mode_shapes(bool quick);

}  // namespace valora::bench
