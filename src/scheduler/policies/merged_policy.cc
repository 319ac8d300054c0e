// Each step runs the requests of one adapter, merged, or those of the base model: whichever the
// oldest request of the highest priority uses. All others wait.
#include <tuple>

#include "scheduler/policies/policy.h"
#include "scheduler/policies/step_batch.h"

namespace valora::scheduler {
namespace {

// The oldest request, running or waiting. If only running ones counted, an adapter with an endless
// stream of requests would starve all others.
const Request& oldest(const PolicyState& state) {
  const Request* first = &state[0];
  const auto age = [](const Request& r) { return std::tie(r.priority, r.arrival, r.id); };
  for (RequestIndex i = 1; i < state.size(); ++i)
    if (age(state[i]) < age(*first)) first = &state[i];
  return *first;
}

class MergedPolicy final : public Policy {
 public:
  std::string name() const override { return "merged"; }
  bool merges() const override { return true; }

  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan{.order = fcfs_order(state)};
    if (plan.order.empty()) return plan;
    plan.merged = oldest(state).merge;
    if (plan.merged != kBaseModel) plan.mode = Mode::kMerged;
    std::erase_if(plan.order, [&](RequestIndex i) { return state[i].merge != plan.merged; });
    return plan;
  }
};

}  // namespace

std::unique_ptr<Policy> make_merged_policy(const PolicyOptions&) {
  return std::make_unique<MergedPolicy>();
}

}  // namespace valora::scheduler
