#include "scheduler/policies/step_batch.h"

#include <algorithm>
#include <optional>

namespace valora::scheduler {
namespace {

// Calls body(index, tokens) for each request that fits.
template <typename Body>
void for_each_in_step(const PolicyState& state, std::span<const RequestIndex> order,
                      const StepMode& mode, Body&& body) {
  int budget = state.token_budget, sequences = state.max_sequences;
  int64_t room = state.free_tokens;
  std::vector<RequestIndex> kept;
  if (mode.mode == Mode::kMerged) order = kept = merged_order(state, order, mode.merged);
  for (const RequestIndex i : order) {
    if (budget <= 0 || sequences <= 0) break;
    const Request& request = state[i];
    const int tokens = std::min(request.remaining_tokens(), budget);
    if (tokens <= 0) continue;
    if (i >= state.running.size() && (room -= static_cast<int64_t>(request.tokens.size())) < 0)
      break;
    budget -= tokens;
    --sequences;
    body(i, tokens);
  }
}

// The value of these tokens in output tokens: one for a decode; for a part of a prompt, the share
// of its remaining steps that it saves. A part that saves no step does not bring the first token
// closer.
double yield_of(const Request& request, int tokens, int budget) {
  const int left = request.remaining_tokens();
  const int steps = (left + budget - 1) / budget;
  const int then = (left - tokens + budget - 1) / budget;
  return static_cast<double>(steps - then) / steps;
}

}  // namespace

std::vector<RequestIndex> merged_order(const PolicyState& state,
                                       std::span<const RequestIndex> order, AdapterId merged) {
  std::vector<RequestIndex> kept;
  std::optional<TenantId> passed;
  for (const RequestIndex i : order) {
    const Request& request = state[i];
    const bool waits = i >= state.running.size();
    if (waits && passed && *passed != request.tenant) break;
    if (request.merge == merged)
      kept.push_back(i);
    else if (waits)
      passed = request.tenant;
  }
  return kept;
}

StepBatch batch_of(const PolicyState& state, std::span<const RequestIndex> order,
                   const StepMode& mode) {
  StepBatch batch;
  StepShaper shaper(mode.mode, mode.merged);
  for_each_in_step(state, order, mode, [&](RequestIndex i, int tokens) {
    shaper.add(state[i], tokens);
    ++batch.requests;
    batch.yields += yield_of(state[i], tokens, state.token_budget);
  });
  shaper.change(change_to(mode.merged, state.weights));
  batch.shape = shaper.shape();
  return batch;
}

std::vector<StepPart> parts_of(const PolicyState& state, std::span<const RequestIndex> order) {
  std::vector<StepPart> parts;
  for_each_in_step(state, order, {},
                   [&](RequestIndex i, int tokens) { parts.push_back({i, tokens}); });
  return parts;
}

std::vector<std::pair<AdapterId, int>> count_merges(const PolicyState& state,
                                                    std::span<const RequestIndex> order) {
  std::vector<std::pair<AdapterId, int>> counts;
  for_each_in_step(state, order, {}, [&](RequestIndex i, int) {
    const AdapterId adapter = state[i].merge;
    if (adapter == kBaseModel) return;
    const auto it = std::ranges::find(counts, adapter, &std::pair<AdapterId, int>::first);
    if (it == counts.end())
      counts.emplace_back(adapter, 1);
    else
      ++it->second;
  });
  return counts;
}

}  // namespace valora::scheduler
