// The linears of whole steps in the three modes (VaLoRA §4.4): what mixed and merged adapters cost
// beside the base.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> mode_shapes(bool quick);

}  // namespace valora::bench
