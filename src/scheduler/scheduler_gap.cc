// How many tokens of prompts a step takes beside requests that decode.
#include <algorithm>
#include <cmath>

#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {
namespace {

void add_prefill(StepShape& shape, const Request& request, int tokens) {
  shape.prefill_tokens += tokens;
  shape.prefill_context += int64_t{tokens} * request.computed_tokens + int64_t{tokens} * tokens / 2;
}

}  // namespace

void Scheduler::limit_prefill(Step& step, std::span<Request* const> running) const {
  if (config_.max_decode_gap <= 0 || !costs_.known()) return;
  for (const Request* request : running)
    step.limited.decode_tokens += request->remaining_tokens() == 1 ? 1 : 0;
  if (step.limited.decode_tokens == 0) return;
  step.most_seconds =
      std::max(config_.max_decode_gap, kGapSteps * costs_.running_seconds(step.limited));
}

// The first prompt of a step gets some tokens even if the limit has no room for them.
int Scheduler::prefill_room(const Step& step, const Request& request) const {
  const int most = std::min(request.remaining_tokens(), step.budget);
  if (most <= 1 || step.most_seconds == 0) return most;
  const double seconds = step.most_seconds / std::exp(log_gap_);
  const auto fits = [&](int tokens) {
    StepShape shape = step.limited;
    add_prefill(shape, request, tokens);
    return costs_.running_seconds(shape) <= seconds;
  };
  int low = step.limited.prefill_tokens == 0 ? std::min(most, kLeastChunk) : 0, high = most;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void Scheduler::count_prefill(Step& step, const Request& request, int tokens) {
  if (step.most_seconds == 0 || tokens <= 1) return;
  add_prefill(step.limited, request, tokens);
  step.plan.limited |= tokens < request.remaining_tokens();
}

// The costs follow all steps. Those that are limited are of one kind, which may be off from them.
void Scheduler::note_gap(const StepPlan& plan, double seconds) {
  constexpr double kNewest = 0.2;
  if (!plan.limited || seconds <= 0) return;
  const double most = std::log(LiveCosts::kMostCorrection);
  const double off = std::log(seconds / costs_.seconds(plan.shape));
  log_gap_ += kNewest * (std::clamp(off, -most, most) - log_gap_);
}

}  // namespace valora::scheduler
