// The inner loop of the bandwidth's measurement, compiled for the machine it runs on.
#pragma once

#include <cstdint>

namespace valora::bench {

float sum_floats(const float* values, int64_t count);

}  // namespace valora::bench
