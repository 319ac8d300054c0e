// What a step does to the weights, what it costs, and whom its mode leaves out.
#include <algorithm>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {

void Scheduler::count_passed(TimePoint now) {
  for (const auto& request : passed_) request->passed += now - passed_at_;
  passed_.clear();
  passed_at_ = now;
}

// What the step will do, for the costs; the weights change when it runs.
void Scheduler::take_shape(StepPlan& plan) {
  StepShaper shaper(plan.mode, plan.merged);
  for (const StepItem& item : plan.items) shaper.add(item);
  const WeightsChange change = change_to(plan.merged, weights_);
  shaper.change(change);
  plan.shape = shaper.shape();
  // All its requests are of the merged adapter.
  if (plan.mode == Mode::kMixture && plan.shape.segments == 0)
    plan.mode = plan.shape.mode = mode_ = Mode::kMerged;
  weights_ = change.after;
}

void Scheduler::note_step(const StepPlan& plan, Duration time) {
  note_gap(plan, seconds(time));
  if (config_.proposer) note_draft_rows(plan, seconds(time));
  costs_.observe(plan.shape, seconds(time));
  int tokens = 0;
  for (const StepItem& item : plan.items) tokens += item.known() > 1 ? item.tokens : 0;
  pool_.note_prefill(tokens, seconds(time));
}

// What the tokens of a request would take alone: seconds, or the weights of VTC if no cost is
// known.
double Scheduler::price(const StepItem& item) const {
  const bool prefill = item.known() > 1;
  if (!costs_.known()) return prefill ? item.tokens : 2;
  return costs_.running_seconds(prefill ? StepShape{.prefill_tokens = item.tokens}
                                        : StepShape{.decode_tokens = item.tokens});
}

// The requests of a step share its time by what each of its requests would have taken alone.
void Scheduler::charge(const StepPlan& plan, Duration time) {
  double total = 0;
  for (const StepItem& item : plan.items) total += price(item);
  const double unit = costs_.known() ? seconds(time) / total : 1;
  for (const StepItem& item : plan.items) waiting_.serve(*item.request, unit * price(item));
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

// A running request ends. How often that happens counts while no place is free.
void Scheduler::note_end(TimePoint now) {
  constexpr double kNewest = 0.1;
  if (static_cast<int>(running_.size()) < config_.max_num_seqs) {
    last_end_ = {};
    return;
  }
  if (last_end_ != TimePoint{})
    end_interval_ += kNewest * (seconds(now - last_end_) - end_interval_);
  last_end_ = now;
}

// If it is not, it is ahead of the next one. A request waits for the prompts before it, and for a
// place in the step.
bool Scheduler::comes_too_late(Request& request, Ahead& ahead, TimePoint now) {
  if (request.expected_cached < 0) {
    memory::extend_block_keys(request.identity, request.tokens, request.block_keys);
    request.expected_cached =
        pool_.prefix_caching() ? pool_.resident_tokens(request.identity, request.block_keys) : 0;
  }
  const auto tokens = static_cast<int>(request.tokens.size());
  const double own = prefill_seconds(std::max(1, tokens - request.expected_cached));
  const double step = costs_.running_seconds({.decode_tokens = static_cast<int>(running_.size())});
  const int places = config_.max_num_seqs - static_cast<int>(running_.size());
  const double place = std::max(0, ahead.requests - places + 1) * end_interval_;
  const double begin = std::max(ahead.prefill, place);
  if (request.deadline != TimePoint{} && !request.scheduled_once &&
      now + from_seconds(begin + own + step) > request.deadline) {
    ++early_aborts_;
    return true;
  }
  ahead.prefill += own;
  ++ahead.requests;
  return false;
}

}  // namespace valora::scheduler
