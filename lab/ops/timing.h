// Times several implementations in turn, so that other load on the machine affects all of them
// equally.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/serve/statistics.h"

namespace valora::bench {

struct Runner {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  std::string name;
  Distribution seconds;  // per run
};

struct RaceRules {
  double seconds = 0.5;  // for all runners together, approximately
  int min_rounds = 5;    // even if they exceed `seconds`
  int max_rounds = 200;
  double min_sample = 20e-6;  // seconds; shorter runs are repeated within a sample
};

// Each round takes one sample per runner. Before the first round, each runner has one warm-up run
// and two runs that determine its repetitions. A runner leaves its data in the caches, so the order
// differs in each round, and an unmeasured run precedes each sample.
std::vector<Timing> race(const std::vector<Runner>& runners, const RaceRules& rules);

// Seconds of the fastest of `rounds` runs.
double fastest(const std::function<void()>& run, int rounds);

}  // namespace valora::bench
