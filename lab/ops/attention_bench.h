// Benchmarks paged attention and vision-tower attention against ATen on contiguous tensors.
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

std::vector<Shape> attention_shapes(bool quick);

}  // namespace valora::bench
