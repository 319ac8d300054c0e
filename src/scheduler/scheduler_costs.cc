// What a step does to the weights, what it costs, and whom its mode leaves out.
#include "scheduler/scheduler.h"

namespace valora::scheduler {

void Scheduler::count_passed(TimePoint now) {
  for (const auto& request : passed_) request->passed += now - passed_at_;
  passed_.clear();
  passed_at_ = now;
}

// What the step will do, for the costs; the weights change when it runs.
void Scheduler::take_shape(StepPlan& plan) {
  StepShaper shaper(plan.mode, plan.merged);
  for (const StepItem& item : plan.items) shaper.add(*item.request, item.tokens);
  const WeightsChange change = change_to(plan.merged, weights_);
  shaper.change(change);
  plan.shape = shaper.shape();
  weights_ = change.after;
}

void Scheduler::note_step(const StepPlan& plan, Duration time) {
  costs_.observe(plan.shape, seconds(time));
  int tokens = 0;
  for (const StepItem& item : plan.items) tokens += item.tokens > 1 ? item.tokens : 0;
  if (2 * tokens > plan.total_tokens) pool_.note_prefill(tokens, seconds(time));
}

}  // namespace valora::scheduler
