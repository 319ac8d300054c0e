// Scheduling policies used in turn by one engine, so that they are compared with the same weights,
// the same memory and almost the same machine state.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

class PoliciesInTurn final : public Policy {
 public:
  // At least one policy; the first is active initially.
  explicit PoliciesInTurn(std::vector<std::unique_ptr<Policy>> policies);

  std::string name() const override;  // the first policy that merges, or else the first
  bool merges() const override;
  // A policy begins each of its turns with empty memory.
  PolicyPlan plan(const PolicyState& state, TimePoint now) const override;

  // Takes effect at the next step. Callable from any thread while the engine has no requests.
  void take(size_t policy);

 private:
  const Policy& representative_policy() const;

  const std::vector<std::unique_ptr<Policy>> policies_;
  std::atomic<size_t> taken_ = 0;
  mutable std::atomic<bool> begins_ = false;  // a turn has just begun
};

}  // namespace valora::scheduler
