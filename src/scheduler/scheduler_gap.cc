// Limits the prompt tokens in a step that also decodes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/pool.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_step.h"

namespace valora::scheduler {

double Scheduler::gap_bound(const Request& request) const {
  return request.identity.media.empty() ? config_.max_decode_gap : config_.max_media_gap;
}

bool Scheduler::bounds_gaps() const {
  return (config_.max_decode_gap > 0 || config_.max_media_gap > 0) && costs_.known();
}

namespace {

// True if the request has media and its prompt is not fully computed.
bool computes_media(const Request& request) {
  return has_pending_media(request) ||
         (!request.identity.media.empty() && request.remaining_tokens() > 1);
}

// True if the request arrived after the oldest request that computes media.
bool comes_after_media(const Request* media, const Request& request) {
  return media && &request != media &&
         std::pair(request.arrival, request.id) > std::pair(media->arrival, media->id);
}

// A step that would end inside a joint range stops before it; if the range comes first, the step
// includes all of it if `most` allows, otherwise nothing.
int in_whole_ranges(const Request& request, int tokens, int most) {
  const int64_t from = request.computed_tokens, end = from + tokens;
  const auto range = std::ranges::upper_bound(request.joint, end, {}, &PositionRange::end);
  if (range == request.joint.end() || range->begin >= end) return tokens;
  if (range->begin > from) return static_cast<int>(range->begin - from);
  return range->end - from <= most ? static_cast<int>(range->end - from) : 0;
}

}  // namespace

// While requests decode, the limit protects them. While media are encoded or computed, it protects
// the request with the media: later prompts get no more of a step than that request may take. With
// only their own limit they would overtake it forever, because its media are encoded between steps.
void Scheduler::limit_prefill(Step& step, std::span<Request* const> running) const {
  if (!bounds_gaps()) return;
  StepShaper decodes(step.plan.mode, step.plan.merged);
  for (const Request* request : running)
    if (request->remaining_tokens() == 1) decodes.add(*request, 1);
  if (config_.max_media_gap > 0)
    for (const auto& request : running_)
      if (computes_media(*request) && !comes_after_media(step.media_first, *request))
        step.media_first = request.get();
  const StepShape shape = decodes.shape();
  step.decodes = shape.decode_tokens > 0;
  if (!step.decodes && !step.media_first) return;
  const double decode = config_.costs.running_seconds(shape) * std::exp(log_decode_);
  step.free_seconds = step.decodes ? kGapSteps * decode : 0;
  step.limited = std::move(decodes);
}

// The part of `most` tokens that the limit allows. The first prompt of a step always gets some.
int Scheduler::prefill_within_bound(const Step& step, const Request& request, int most) const {
  if (most <= 1 || !step.limited) return most;
  double bound = step.decodes ? gap_bound(request) : 0;
  if (comes_after_media(step.media_first, request))
    bound = bound > 0 ? std::min(bound, config_.max_media_gap) : config_.max_media_gap;
  if (bound <= 0) return most;
  const double seconds = std::max(bound, step.free_seconds) / std::exp(log_mixed_);
  const auto fits = [&](int tokens) {
    StepShaper shaper = *step.limited;
    shaper.add(request, tokens);
    return config_.costs.running_seconds(shaper.shape()) <= seconds;
  };
  int low = !step.prefills ? std::min(most, kLeastChunk) : 0, high = most;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

int Scheduler::prefill_room(const Step& step, const Request& request) const {
  const int most = std::min(request.remaining_tokens(), step.budget);
  const int tokens = prefill_within_bound(step, request, most);
  const bool first = !step.limited || !step.prefills;
  return in_whole_ranges(request, tokens, first ? most : tokens);
}

void Scheduler::count_prefill(Step& step, const Request& request, int tokens) {
  if (!step.limited || tokens <= 1) return;
  step.limited->add(request, tokens);
  step.prefills = true;
}

// Each kind of step has its own factor, because an estimate may be right for one and wrong for the
// other, and the single factor of LiveCosts follows the more frequent one.
void Scheduler::record_gap(const StepPlan& plan, double seconds) {
  constexpr double kNewest = 0.5;  // a prompt takes few steps
  const StepShape& shape = plan.shape;
  if (!bounds_gaps() || seconds <= 0) return;
  if (shape.decode_tokens == 0 || shape.draft_tokens > 0 || shape.merges || shape.restores) return;
  // A few prompt tokens say nothing about the cost of many.
  if (shape.prefill_tokens > 0 && shape.prefill_tokens < kLeastChunk) return;
  double& log_factor = shape.prefill_tokens > 0 ? log_mixed_ : log_decode_;
  const double most = std::log(kMostMixed);
  const double taken = std::log(seconds / config_.costs.seconds(shape));
  log_factor += kNewest * (std::clamp(taken, -most, most) - log_factor);
}

}  // namespace valora::scheduler
