// Several implementations of one operation, timed in turns, so that what else the machine does
// meets all alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/serve/statistics.h"

namespace valora::bench {

struct Runner {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  std::string name;
  Distribution seconds;  // of one run
};

struct RaceRules {
  double seconds = 0.5;  // for all runners together, about
  int min_rounds = 5;    // even where they take longer
  int max_rounds = 200;
  double min_sample = 20e-6;  // a shorter run is repeated within a sample
};

// Round after round, each runner once, after one unmeasured run and two that find the repetitions.
// Whoever ran before leaves the caches to the next: so the order is another in each round, and an
// unmeasured run stands before each sample.
std::vector<Timing> race(const std::vector<Runner>& runners, const RaceRules& rules);

// The fastest of a few runs of one.
double fastest(const std::function<void()>& run, int rounds);

}  // namespace valora::bench
