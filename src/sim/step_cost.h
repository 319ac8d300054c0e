// The simulated time of a step, as a function of its shape.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "scheduler/scheduler.h"

namespace valora::sim {

// The features of a step that a cost model uses.
struct StepShape {
  scheduler::Mode mode = scheduler::Mode::kUnmerged;
  bool switches = false;       // the merged adapter differs from the previous step's
  int prefill_tokens = 0;      // of prompts, and of preempted requests that are recomputed
  int decode_tokens = 0;       // one per request in decode
  int64_t context_tokens = 0;  // attended keys, summed over the tokens of the step
  int segments = 0;            // low-rank products per linear (see engine/segments.h)

  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// `merged_before`: the adapter merged in the previous step.
StepShape shape_of(const scheduler::StepPlan& plan, scheduler::AdapterId merged_before);

using StepCost = std::function<Duration(const StepShape&)>;

// A step's time as a linear function, in seconds. The caller provides the coefficients, measured or
// published.
struct LinearCost {
  double step = 0;           // constant per step
  double prefill_token = 0;  // per token
  double decode_token = 0;
  double context_token = 0;
  double segment = 0;
  double switching = 0;  // per change of the merged adapter

  Duration operator()(const StepShape& shape) const;
};

}  // namespace valora::sim
