#include "lab/serve/arrivals.h"

#include <cmath>

#include "lab/serve/random.h"

namespace valora::bench {

std::vector<double> poisson_arrivals(int count, double rate, uint64_t seed) {
  Random random(seed);
  std::vector<double> times;
  double time = 0;
  for (int i = 0; i < count; ++i) {
    times.push_back(time);
    time += -std::log1p(-random.uniform01()) / rate;
  }
  return times;
}

}  // namespace valora::bench
