// What a step costs in simulated time, as a function of its shape.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "scheduler/scheduler.h"

namespace valora::sim {

// A step as a cost model sees it.
struct StepShape {
  scheduler::Mode mode = scheduler::Mode::kUnmerged;
  bool switches = false;       // the weights in use differ from those of the step before
  int prefill_tokens = 0;      // of prompts, and of preempted requests that are computed again
  int decode_tokens = 0;       // one per request that has its prompt behind it
  int64_t context_tokens = 0;  // keys that the step's tokens attend to, summed over the tokens
  int segments = 0;            // adapters whose low-rank products run in this step

  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// `merged_before`: the adapter that was merged in the step before.
StepShape shape_of(const scheduler::StepPlan& plan, scheduler::AdapterId merged_before);

using StepCost = std::function<Duration(const StepShape&)>;

// A step's time as a sum, in seconds. The numbers are the caller's: measured, or published.
struct LinearCost {
  double step = 0;           // fixed, whatever the step holds
  double prefill_token = 0;  // each
  double decode_token = 0;
  double context_token = 0;
  double segment = 0;
  double switching = 0;  // of the weights in use

  Duration operator()(const StepShape& shape) const;
};

}  // namespace valora::sim
