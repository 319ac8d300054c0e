// Send times of requests in an open loop.
#pragma once

#include <cstdint>
#include <vector>

namespace valora::bench {

// In seconds since the start, ascending, starting at 0. Gaps are exponential with mean 1 / rate.
// `rate`: requests per second, above 0.
std::vector<double> poisson_arrivals(int count, double rate, uint64_t seed);

}  // namespace valora::bench
