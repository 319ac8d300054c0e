// All requests in fcfs_order(), with the adapter used by most of the step's requests merged (VaLoRA
// §4.4.2). A merged adapter is replaced only by one with more than twice its requests. Unmerged if
// no request of the step uses an adapter, or its merge would change answers of others
// (Request::merges_among_others).
#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/policies/policy.h"
#include "scheduler/policies/step_batch.h"

namespace valora::scheduler {
namespace {

// A merge costs as much memory traffic as several steps, so the merged adapter is replaced only by
// one with more than this many times its requests.
constexpr int kKeepFactor = 2;

AdapterId choose(const std::vector<std::pair<AdapterId, int>>& counts, AdapterId current) {
  AdapterId best = kBaseModel;
  int most = 0, kept = 0;
  for (const auto& [adapter, count] : counts) {
    if (count > most) best = adapter, most = count;
    if (adapter == current) kept = count;
  }
  return kept > 0 && kKeepFactor * kept >= most ? current : best;
}

// An adapter that may not be merged among others waits until no other request runs or waits.
bool may_merge(const PolicyState& state, const PolicyPlan& plan) {
  const auto own = [&](RequestIndex i) { return state[i].merge == plan.merged; };
  return std::ranges::all_of(plan.order, own) || std::ranges::none_of(plan.order, [&](auto i) {
           return own(i) && !state[i].merges_among_others;
         });
}

class MixturePolicy final : public Policy {
 public:
  std::string name() const override { return "mixture"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan{.order = fcfs_order(state)};
    plan.merged = choose(count_merges(state, plan.order), state.weights.merged);
    if (!may_merge(state, plan)) plan.merged = kBaseModel;
    if (plan.merged != kBaseModel) plan.mode = Mode::kMixture;
    return plan;
  }
};

}  // namespace

std::unique_ptr<Policy> make_mixture_policy(const PolicyOptions&) {
  return std::make_unique<MixturePolicy>();
}

}  // namespace valora::scheduler
