// A policy whose order a test sets.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "scheduler/policies/policy.h"

namespace valora::scheduler::testing {

class ScriptedPolicy final : public Policy {
 public:
  using Script = std::function<PolicyPlan(const PolicyState&)>;
  explicit ScriptedPolicy(Script script) : script_(std::move(script)) {}
  std::string name() const override { return "scripted"; }
  PolicyPlan plan(const PolicyState& state, TimePoint) const override { return script_(state); }

 private:
  Script script_;
};

}  // namespace valora::scheduler::testing
