#include "scheduler/policies/policies_in_turn.h"

#include <algorithm>
#include <utility>

namespace valora::scheduler {

PoliciesInTurn::PoliciesInTurn(std::vector<std::unique_ptr<Policy>> policies)
    : policies_(std::move(policies)) {}

// The policy that stands for all of them in messages about merging.
const Policy& PoliciesInTurn::representative_policy() const {
  const auto merging =
      std::ranges::find_if(policies_, [](const auto& policy) { return policy->merges(); });
  return merging == policies_.end() ? *policies_.front() : **merging;
}

std::string PoliciesInTurn::name() const { return representative_policy().name(); }
bool PoliciesInTurn::merges() const { return representative_policy().merges(); }

void PoliciesInTurn::take(size_t policy) {
  taken_ = policy;
  begins_ = true;
}

PolicyPlan PoliciesInTurn::plan(const PolicyState& state, TimePoint now) const {
  PolicyState own = state;
  if (begins_.exchange(false)) own.memory = {};
  return policies_[taken_]->plan(own, now);
}

}  // namespace valora::scheduler
