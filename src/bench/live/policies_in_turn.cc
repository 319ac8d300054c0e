#include "bench/live/policies_in_turn.h"

#include <algorithm>
#include <utility>

namespace valora::bench {

PoliciesInTurn::PoliciesInTurn(std::vector<std::unique_ptr<scheduler::Policy>> policies) {
  for (auto& policy : policies) entries_.push_back({std::move(policy), {}});
}

bool PoliciesInTurn::merges() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.policy->merges(); });
}

scheduler::PolicyPlan PoliciesInTurn::plan(const scheduler::PolicyState& state,
                                           TimePoint now) const {
  Entry& entry = entries_[taken_];
  scheduler::PolicyState own = state;
  own.memory = entry.memory;
  scheduler::PolicyPlan plan = entry.policy->plan(own, now);
  entry.memory = plan.memory;
  return plan;
}

}  // namespace valora::bench
