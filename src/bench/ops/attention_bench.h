// Benchmark of paged attention and of the vision towers' attention, against ATen's over contiguous
// tensors.
#pragma once

#include <vector>

#include "bench/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> attention_shapes(bool quick);

}  // namespace valora::bench
