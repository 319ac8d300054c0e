// Fits step costs to measured steps.
#pragma once

#include <span>

#include "base/result.h"
#include "scheduler/costs/step_costs.h"

namespace valora::scheduler {

struct MeasuredStep {
  StepShape shape;
  double seconds = 0;
  // Time to read memory during the step, relative to the usual time. The fit attributes it to the
  // step and its adapters, whose weights are read once, and not to its tokens.
  double memory_time = 1;
};

struct FittedCosts {
  StepCosts costs;
  // |predicted / taken - 1| over the held-out steps (every fifth), each predicted at the memory
  // speed of its time.
  double error_median = 0, error_p95 = 0;
  int steps = 0;  // number of steps used in the fit
};

// No coefficient is negative. Errors are relative to the time of their step; outliers (a step
// interrupted by the system) have less weight. Coefficients that apply to no step stay 0.
// kInvalidArgument if there are fewer than 20 steps, or one takes no time.
Result<FittedCosts> fit_costs(std::span<const MeasuredStep> steps);

// These costs, with their errors over all of the steps; at least one step.
FittedCosts with_errors(const StepCosts& costs, std::span<const MeasuredStep> steps);

// These costs, with the errors a server would see, which corrects its costs after each step
// (live_costs.h) without knowing the memory speed: over the steps that fit_costs() holds out. The
// steps must be in order of time.
FittedCosts with_corrected_errors(const StepCosts& costs, std::span<const MeasuredStep> steps);

}  // namespace valora::scheduler
