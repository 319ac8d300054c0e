// A step's changes to the weights, its costs, and the requests its mode leaves out.
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

// Requests of others would run on weights that lost more by rounding than the bound allows
// (engine/adapters/merge_bound.h), whatever the policy chose.
void Scheduler::keep_others_exact(Step& step) {
  StepPlan& plan = step.plan;
  if (plan.merged == kBaseModel) return;
  for (const Request* request : step.order)
    if (request->merge == plan.merged) mixes_ = {plan.merged, request->merges_among_others};
  const bool others = std::ranges::any_of(
      plan.items, [&](const StepItem& item) { return item.request->merge != plan.merged; });
  // Without a request of the adapter, what was known of it counts.
  if (!others || (mixes_.first == plan.merged && mixes_.second)) return;
  plan.merged = kBaseModel;
  plan.mode = mode_ = Mode::kUnmerged;
}

// Computes the step's shape, for the costs; the weights change when it runs.
void Scheduler::finalize_shape(StepPlan& plan) {
  StepShaper shaper(plan.mode, plan.merged);
  for (const StepItem& item : plan.items) shaper.add(item);
  const WeightsChange change = change_to(plan.merged, weights_);
  shaper.change(change);
  plan.shape = shaper.shape();
  // All its requests use the merged adapter.
  if (plan.mode == Mode::kMixture && plan.shape.segments == 0)
    plan.mode = plan.shape.mode = mode_ = Mode::kMerged;
  weights_ = change.after;
}

void Scheduler::note_step(const StepPlan& plan, Duration time) {
  record_gap(plan, seconds(time));
  if (config_.proposer) record_draft_rows(plan, seconds(time));
  costs_.observe(plan.shape, seconds(time));
  int tokens = 0;
  for (const StepItem& item : plan.items) tokens += item.known() > 1 ? item.tokens : 0;
  pool_.record_prefill(tokens, seconds(time));
}

// The cost of an item's tokens on their own: in seconds, or with the weights of VTC if costs are
// unknown.
double Scheduler::price(const StepItem& item) const {
  const bool prefill = item.known() > 1;
  if (!costs_.known()) return prefill ? item.tokens : 2;
  return costs_.running_seconds(prefill ? StepShape{.prefill_tokens = item.tokens}
                                        : StepShape{.decode_tokens = item.tokens});
}

// Divides a step's time among its requests in proportion to what each would take on its own.
void Scheduler::charge(const StepPlan& plan, Duration time) {
  double total = 0;
  for (const StepItem& item : plan.items) total += price(item);
  const double unit = costs_.known() ? seconds(time) / total : 1;
  for (const StepItem& item : plan.items) waiting_.serve(*item.request, unit * price(item));
}

// The time that these prompt tokens add to a step in which all running requests decode.
double Scheduler::prefill_seconds(int tokens) const {
  const auto decodes = static_cast<int>(running_.size());
  return costs_.running_seconds({.prefill_tokens = tokens, .decode_tokens = decodes}) -
         costs_.running_seconds({.decode_tokens = decodes});
}

// Seconds of prefill that running requests still have to do.
double Scheduler::running_prefill() const {
  double sum = 0;
  for (const auto& request : running_)
    if (const int tokens = request->remaining_tokens(); tokens > 1) sum += prefill_seconds(tokens);
  return sum;
}

// A running request ends. The rate of such ends is measured only while no place is free.
void Scheduler::record_step_end(TimePoint now) {
  constexpr double kNewest = 0.1;
  if (static_cast<int>(running_.size()) < config_.max_num_seqs) {
    last_end_ = {};
    return;
  }
  if (last_end_ != TimePoint{})
    end_interval_ += kNewest * (seconds(now - last_end_) - end_interval_);
  last_end_ = now;
}

// A request waits for the prompts before it and for a place in the step. One that is not too late
// is added to those ahead of the next.
bool Scheduler::misses_target(Request& request, Ahead& ahead, TimePoint now) {
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
