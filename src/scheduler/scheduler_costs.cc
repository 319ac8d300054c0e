// What a step does to the weights, what it costs, and whom its mode leaves out.
#include <algorithm>

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

// Beside the decodes of the running requests.
double Scheduler::prefill_seconds(int tokens) const {
  const auto decodes = static_cast<int>(running_.size());
  return costs_.running_seconds({.prefill_tokens = tokens, .decode_tokens = decodes}) -
         costs_.running_seconds({.decode_tokens = decodes});
}

// Seconds of prompts that running requests have not computed yet.
double Scheduler::running_prefill() const {
  double sum = 0;
  for (const auto& request : running_)
    if (const int tokens = request->remaining_tokens(); tokens > 1) sum += prefill_seconds(tokens);
  return sum;
}

// queued: seconds of prefill before this request; its own are added if it stays.
bool Scheduler::comes_too_late(Request& request, double& queued, TimePoint now) {
  if (request.expected_cached < 0) {
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
    request.expected_cached =
        pool_.prefix_caching() ? pool_.resident_tokens(request.identity, request.block_keys) : 0;
  }
  const auto tokens = static_cast<int>(request.tokens.size());
  const double own = prefill_seconds(std::max(1, tokens - request.expected_cached));
  const double step = costs_.running_seconds({.decode_tokens = static_cast<int>(running_.size())});
  const bool late = request.deadline != TimePoint{} && !request.scheduled_once &&
                    now + from_seconds(queued + own + step) > request.deadline;
  if (late)
    ++early_aborts_;
  else
    queued += own;
  return late;
}

}  // namespace valora::scheduler
