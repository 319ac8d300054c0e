// Benchmarks the gated delta rule with the convolution before it and the gated norm after it.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> delta_shapes(bool quick);

}  // namespace valora::bench
