// A step executor without a model: a cost function determines a step's time, and tokens are a
// function of request and position.
#pragma once

#include <functional>

#include "scheduler/step_executor.h"

namespace valora::sim {

// The token at a position of a request's answer. Always negative, so it never equals a prompt
// token.
int32_t answer_token(scheduler::RequestId request, int position);

// The time of a step, e.g. scheduler::StepCosts.
using StepCost = std::function<Duration(const scheduler::StepShape&)>;

class SimulatedExecutor final : public scheduler::StepExecutor {
 public:
  // The clock must outlive this object; each step advances it by its cost.
  SimulatedExecutor(StepCost cost, SimulatedClock& clock) : cost_(std::move(cost)), clock_(clock) {}

  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan&) override { return {}; }
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

 private:
  StepCost cost_;
  SimulatedClock& clock_;
};

}  // namespace valora::sim
