// Scheduling policies that one engine uses in turn, so that they are compared with the same
// weights, the same memory and nearly the same state of the machine.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::bench {

class PoliciesInTurn final : public scheduler::Policy {
 public:
  // At least one; the first one is taken.
  explicit PoliciesInTurn(std::vector<std::unique_ptr<scheduler::Policy>> policies);

  std::string name() const override;  // of the first one that merges, or of the first one
  bool merges() const override;
  // A policy begins each of its turns without a memory.
  scheduler::PolicyPlan plan(const scheduler::PolicyState& state, TimePoint now) const override;

  // From the next step on. Any thread, while the engine has no request.
  void take(size_t policy);

 private:
  const scheduler::Policy& spokesman() const;

  const std::vector<std::unique_ptr<scheduler::Policy>> policies_;
  std::atomic<size_t> taken_ = 0;
  mutable std::atomic<bool> begins_ = false;  // a turn
};

}  // namespace valora::bench
