// A step executor without a model: a step takes the time that a cost function says, and yields
// tokens that follow from the request alone.
#pragma once

#include "scheduler/step_executor.h"
#include "sim/step_cost.h"

namespace valora::sim {

// The token at a position of a request's answer. Never one of a prompt: prompts hold ids from 0 on.
int32_t answer_token(scheduler::RequestId request, int position);

class SimulatedExecutor final : public scheduler::StepExecutor {
 public:
  // `clock` outlives it, and is advanced by each step's cost.
  SimulatedExecutor(StepCost cost, SimulatedClock& clock) : cost_(std::move(cost)), clock_(clock) {}

  std::vector<scheduler::FailedRequest> prepare(const scheduler::StepPlan&) override { return {}; }
  Result<std::vector<scheduler::StepOutput>> run(const scheduler::StepPlan& plan) override;

 private:
  StepCost cost_;
  SimulatedClock& clock_;
  scheduler::AdapterId merged_ = scheduler::kBaseModel;
};

}  // namespace valora::sim
