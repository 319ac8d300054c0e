#include "scheduler/policies/step_batch.h"

#include <algorithm>
#include <utility>

namespace valora::scheduler {
namespace {

// By how much each request exceeds its tolerance.
class Credits {
 public:
  Credits(const PolicyState& state, TimePoint now, Duration tolerance, Duration step,
          Duration change)
      : state_(state), now_(now), tolerance_(tolerance), step_(step), change_(change) {}

  // Positive: the request starves.
  Duration beyond(RequestIndex i) const {
    const Request& request = state_[i];
    const bool runs = state_.weights.merged == kBaseModel || request.merge == state_.weights.merged;
    const Duration change = runs ? Duration{} : change_;
    if (request.tolerance == Duration{}) {
      if (request.passed == Duration{}) return -tolerance_;
      return request.passed + step_ + change - tolerance_;
    }
    const Duration waited = now_ - std::max(request.arrival, request.last_scheduled);
    return waited + execution(request) + change - request.tolerance;
  }

 private:
  // Time to its next token: a prompt may take several steps.
  Duration execution(const Request& request) const {
    const int tokens = request.remaining_tokens();
    if (tokens <= 1) return step_;
    return std::max(step_, from_seconds(state_.costs->running_seconds({.prefill_tokens = tokens})));
  }

  const PolicyState& state_;
  const TimePoint now_;
  const Duration tolerance_, step_, change_;
};

}  // namespace

std::vector<RequestIndex> take_starving(const PolicyState& state, std::vector<RequestIndex>& order,
                                        Duration tolerance, TimePoint now) {
  const StepBatch now_running = batch_of(state, order, {Mode::kUnmerged, kBaseModel});
  const Duration step = from_seconds(state.costs->running_seconds(now_running.shape));
  const Duration change = from_seconds(state.costs->weights_seconds({.switches = true}));
  const Credits credits(state, now, tolerance, step, change);
  std::vector<std::pair<Duration, RequestIndex>> decodes, others;
  std::vector<RequestIndex> fresh_decodes, rest, starving;
  for (const RequestIndex i : order) {
    const bool waits = i >= state.running.size();
    const bool decode = !waits && state[i].remaining_tokens() <= 1;
    const Duration beyond = credits.beyond(i);
    const bool starves = beyond > Duration{};
    if (starves) starving.push_back(i);
    if (decode && !starves)
      fresh_decodes.push_back(i);
    else if (starves || (waits && state.contended))
      (decode ? decodes : others).emplace_back(beyond, i);
    else
      rest.push_back(i);
  }
  const auto farthest_first = [&](const auto& a, const auto& b) {
    const int pa = state[a.second].priority, pb = state[b.second].priority;
    return pa != pb ? pa < pb : a.first > b.first;
  };
  std::ranges::stable_sort(decodes, farthest_first);
  if (!state.contended) std::ranges::stable_sort(others, farthest_first);
  const size_t reserved = std::min<size_t>(starving.size() - decodes.size(),
                                           static_cast<size_t>(state.max_sequences) / 2);
  const auto limit = static_cast<size_t>(state.max_sequences) - reserved;
  order.clear();
  for (const auto& [beyond, i] : decodes) order.push_back(i);
  const size_t before = std::min(fresh_decodes.size(), limit - std::min(limit, order.size()));
  order.insert(order.end(), fresh_decodes.begin(),
               fresh_decodes.begin() + static_cast<ptrdiff_t>(before));
  for (const auto& [beyond, i] : others) order.push_back(i);
  order.insert(order.end(), fresh_decodes.begin() + static_cast<ptrdiff_t>(before),
               fresh_decodes.end());
  order.insert(order.end(), rest.begin(), rest.end());
  return starving;
}

}  // namespace valora::scheduler
