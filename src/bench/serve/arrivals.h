// Send times of the requests in an open loop.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::bench {

// Seconds since the start, ascending, the first 0. The gaps are exponential with mean 1 / rate.
// `rate`: requests per second, above 0.
std::vector<double> poisson_arrivals(int count, double rate, uint64_t seed);

}  // namespace valora::bench
