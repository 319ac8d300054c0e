// Fits step costs to steps that were measured.
#pragma once

#include <span>

#include "base/result.h"
#include "scheduler/costs/step_costs.h"

namespace valora::scheduler {

struct MeasuredStep {
  StepShape shape;
  double seconds = 0;
  // Time to read memory during the step, relative to the usual time. The fit attributes this to the
  // step and its adapters, whose weights are read once, and not to its tokens.
  double memory_time = 1;
};

struct FittedCosts {
  StepCosts costs;
  // |predicted / taken - 1| over the steps that the fit did not see, every fifth one, each
  // predicted at the speed that memory had then.
  double error_median = 0, error_p95 = 0;
  int steps = 0;  // that the fit saw
};

// No coefficient is negative. Errors count relative to the time of their step, and outliers (a step
// that the system interrupted) count less. Coefficients of what no step has stay 0.
// kInvalidArgument if there are fewer than 20 steps, or one takes no time.
Result<FittedCosts> fit_costs(std::span<const MeasuredStep> steps);

// These costs, with their errors over all of these steps; at least one.
FittedCosts with_errors(const StepCosts& costs, std::span<const MeasuredStep> steps);

// These costs, with their errors as a server has them, which corrects its costs by each step
// (live_costs.h) and is not told the speed of memory: over the steps that fit_costs() does not see,
// of steps in the order of their time.
FittedCosts with_corrected_errors(const StepCosts& costs, std::span<const MeasuredStep> steps);

}  // namespace valora::scheduler
