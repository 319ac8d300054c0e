#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/fcfs_order.h"

namespace valora::scheduler {
namespace {

// A merge costs as much memory traffic as several steps: only an adapter with more than this many
// times the requests replaces the merged one.
constexpr int kKeepFactor = 2;

// Number of requests per adapter among those that fit into the step, adapters by first occurrence.
std::vector<std::pair<AdapterId, int>> count_adapters(const std::vector<RequestIndex>& order,
                                                      const PolicyState& state) {
  std::vector<std::pair<AdapterId, int>> counts;
  int budget = state.token_budget, sequences = state.max_sequences;
  for (const RequestIndex i : order) {
    if (budget <= 0 || sequences <= 0) break;
    const Request& request = state[i];
    const int tokens = std::min(request.remaining_tokens(), budget);
    if (tokens <= 0) continue;
    budget -= tokens;
    --sequences;
    if (request.merge == kBaseModel) continue;
    const auto it = std::ranges::find(counts, request.merge, &std::pair<AdapterId, int>::first);
    if (it == counts.end())
      counts.emplace_back(request.merge, 1);
    else
      ++it->second;
  }
  return counts;
}

AdapterId choose(const std::vector<std::pair<AdapterId, int>>& counts, AdapterId current) {
  AdapterId best = kBaseModel;
  int most = 0, kept = 0;
  for (const auto& [adapter, count] : counts) {
    if (count > most) best = adapter, most = count;
    if (adapter == current) kept = count;
  }
  return kept > 0 && kKeepFactor * kept >= most ? current : best;
}

class MixturePolicy final : public Policy {
 public:
  std::string name() const override { return "mixture"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan{Mode::kUnmerged, kBaseModel, fcfs_order(state)};
    plan.merged = choose(count_adapters(plan.order, state), state.merged);
    if (plan.merged != kBaseModel) plan.mode = Mode::kMixture;
    return plan;
  }
};

}  // namespace

std::unique_ptr<Policy> make_mixture_policy() { return std::make_unique<MixturePolicy>(); }

}  // namespace valora::scheduler
