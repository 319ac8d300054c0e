// Benchmarks the all-reduce of ranks that share memory (base/threads/host_communicator.h).
#pragma once

#include <vector>

#include "lab/ops/measurement.h"

namespace valora::bench {

// One run is kAllReduces in a row, on ranks of one thread each.
inline constexpr int kAllReduces = 64;

std::vector<Shape> collective_shapes(bool quick);

}  // namespace valora::bench
