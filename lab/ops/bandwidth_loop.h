// The inner loop of the bandwidth measurement, compiled for the host's instruction sets.
#pragma once

#include <cstdint>

namespace valora::bench {

float sum_floats(const float* values, int64_t count);

}  // namespace valora::bench
