// Measures the costs of a model's steps on this machine, for `valora tune --cost`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "engine/start/model_costs.h"

namespace valora::tuning {

struct CostTuning {
  EngineOptions engine;  // model_path, dtype, threads, merge, ranks, rounding
  double seconds = 0;    // spent measuring
  uint32_t seed = 1;
};

struct TunedCosts {
  scheduler::CostFile file;
  int steps = 0;                     // measured
  scheduler::FittedCosts corrected;  // from with_corrected_errors()
  // Errors over all steps of each mode: unmerged, merged, mixture.
  std::vector<std::pair<std::string, scheduler::FittedCosts>> modes;
};

// Runs requests of many sizes in the three modes in turn, with adapters written to a temporary
// folder, and fits the costs to the measured steps. progress(seconds done, current activity).
Result<TunedCosts> tune_costs(const CostTuning& tuning,
                              const std::function<void(double, const std::string&)>& progress);

}  // namespace valora::tuning
