#include <algorithm>
#include <span>

#include "scheduler/fcfs_order.h"

namespace valora::scheduler {
namespace {

class UnmergedPolicy final : public Policy {
 public:
  std::string name() const override { return "unmerged"; }
  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    return {Mode::kUnmerged, kBaseModel, fcfs_order(state)};
  }
};

}  // namespace

std::vector<RequestIndex> fcfs_order(const PolicyState& state) {
  std::vector<RequestIndex> order;
  order.reserve(state.size());
  const auto running = static_cast<RequestIndex>(state.running.size());
  const auto append_running = [&](bool decodes) {
    for (RequestIndex i = 0; i < running; ++i)
      if ((state[i].remaining_tokens() <= 1) == decodes) order.push_back(i);
  };
  // A decode takes one token of the budget: decodes first, so that long prefills get the rest.
  append_running(true);
  append_running(false);
  for (RequestIndex i = running; i < state.size(); ++i) order.push_back(i);
  const auto priority = [&](RequestIndex i) { return state[i].priority; };
  std::ranges::stable_sort(std::span(order).subspan(running), {}, priority);
  return order;
}

std::unique_ptr<Policy> make_unmerged_policy() { return std::make_unique<UnmergedPolicy>(); }

}  // namespace valora::scheduler
