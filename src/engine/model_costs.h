// What the steps of a model cost on this machine, before the first step ran.
#pragma once

#include <string>

#include "api/options.h"
#include "base/result.h"
#include "models/registry.h"
#include "scheduler/costs/cost_file.h"
#include "serving/cost_key.h"

namespace valora {

serving::CostKey cost_key(const EngineOptions& options, const models::LoadedModel& model,
                          at::Device device);

// From the sizes of the model, by what a processor core or a GPU of today commonly reads and
// computes. The machine corrects it (scheduler/costs/live_costs.h), but not the ratios within it.
scheduler::StepCosts estimate_costs(const EngineOptions& options, const models::LoadedModel& model,
                                    at::Device device);

struct KnownCosts {
  scheduler::StepCosts costs;
  std::string source;  // for messages
};
// options.costs, else the user's file of this machine and model, else the estimate. An error only
// if the named file cannot be used.
Result<KnownCosts> find_costs(const EngineOptions& options, const models::LoadedModel& model,
                              at::Device device);

}  // namespace valora
