// When the requests of an open loop are sent.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::bench {

// Ascending seconds from the start, the first at 0: exponential gaps with a mean of 1 / rate (rate
// > 0).
std::vector<double> poisson_arrivals(int count, double rate, uint64_t seed);

}  // namespace valora::bench
