// Estimates the costs of a model's steps on this machine before any step has run.
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

// Derived from the model's sizes and the typical speed of a current CPU core or GPU. Measurements
// correct the scale later (scheduler/costs/live_costs.h), but not the ratios.
scheduler::StepCosts estimate_costs(const EngineOptions& options, const models::LoadedModel& model,
                                    at::Device device);

struct KnownCosts {
  scheduler::StepCosts costs;
  std::string source;  // for messages
};
// options.costs, else the user's cost file for this machine and model, else the estimate. Fails
// only if a file named in the options cannot be used.
Result<KnownCosts> find_costs(const EngineOptions& options, const models::LoadedModel& model,
                              at::Device device);

}  // namespace valora
