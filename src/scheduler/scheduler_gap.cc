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
  const double decode = config_.costs.running_seconds(step.limited) * std::exp(log_decode_);
  step.most_seconds = std::max(config_.max_decode_gap, kGapSteps * decode);
}

// The first prompt of a step gets some tokens even if the limit has no room for them.
int Scheduler::prefill_room(const Step& step, const Request& request) const {
  const int most = std::min(request.remaining_tokens(), step.budget);
  if (most <= 1 || step.most_seconds == 0) return most;
  const double seconds = step.most_seconds / std::exp(log_mixed_);
  const auto fits = [&](int tokens) {
    StepShape shape = step.limited;
    add_prefill(shape, request, tokens);
    return config_.costs.running_seconds(shape) <= seconds;
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
  if (step.most_seconds > 0 && tokens > 1) add_prefill(step.limited, request, tokens);
}

// Each kind of step has a factor of its own: an estimate may be right for one and wrong for the
// other, and the one factor of LiveCosts follows whichever is more frequent.
void Scheduler::note_gap(const StepPlan& plan, double seconds) {
  constexpr double kNewest = 0.5;  // a prompt is few steps
  const StepShape& shape = plan.shape;
  if (config_.max_decode_gap <= 0 || !costs_.known() || seconds <= 0) return;
  if (shape.decode_tokens == 0 || shape.merges || shape.restores) return;
  double& log_factor = shape.prefill_tokens > 0 ? log_mixed_ : log_decode_;
  const double most = std::log(kMostMixed);
  const double taken = std::log(seconds / config_.costs.seconds(shape));
  log_factor += kNewest * (std::clamp(taken, -most, most) - log_factor);
}

}  // namespace valora::scheduler
