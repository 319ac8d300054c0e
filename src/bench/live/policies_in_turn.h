// Scheduling policies that one engine takes in turn, so that what is compared has the same weights,
// the same memory and nearly the same moments of the machine.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/policy.h"

namespace valora::bench {

class PoliciesInTurn final : public scheduler::Policy {
 public:
  // At least one; the first one is taken.
  explicit PoliciesInTurn(std::vector<std::unique_ptr<scheduler::Policy>> policies);

  std::string name() const override { return "policies in turn"; }
  bool merges() const override;
  // Each policy has its own memory, which it finds again at its next turn.
  scheduler::PolicyPlan plan(const scheduler::PolicyState& state, TimePoint now) const override;

  // From the next step on. Any thread, while the engine has no request.
  void take(size_t policy) { taken_ = policy; }

 private:
  struct Entry {
    std::unique_ptr<scheduler::Policy> policy;
    scheduler::PolicyMemory memory;
  };
  // plan() runs on the engine thread alone.
  mutable std::vector<Entry> entries_;
  std::atomic<size_t> taken_ = 0;
};

}  // namespace valora::bench
