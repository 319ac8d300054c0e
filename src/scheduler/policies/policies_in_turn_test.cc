#include "scheduler/policies/policies_in_turn.h"

#include <gtest/gtest.h>

namespace valora::scheduler {
namespace {

// Adds 1 to its memory, and merges this adapter.
class Counting final : public Policy {
 public:
  explicit Counting(AdapterId adapter) : adapter_(adapter) {}
  std::string name() const override { return "counting " + std::to_string(adapter_); }
  bool merges() const override { return adapter_ != kBaseModel; }
  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan;
    plan.merged = adapter_;
    plan.memory.saved = state.memory.saved + 1;
    return plan;
  }

 private:
  const AdapterId adapter_;
};

std::vector<std::unique_ptr<Policy>> merging(std::initializer_list<AdapterId> adapters) {
  std::vector<std::unique_ptr<Policy>> policies;
  for (const AdapterId adapter : adapters) policies.push_back(std::make_unique<Counting>(adapter));
  return policies;
}

TEST(PoliciesInTurn, PlansWithTheSelectedPolicy) {
  PoliciesInTurn policies(merging({3, 5}));
  EXPECT_EQ(policies.plan({}, {}).merged, 3);
  policies.take(1);
  EXPECT_EQ(policies.plan({}, {}).merged, 5);
}

// The scheduler passes the previous plan's memory back.
double remembered(const PoliciesInTurn& policies, double before) {
  PolicyState state;
  state.memory.saved = before;
  return policies.plan(state, {}).memory.saved;
}

TEST(PoliciesInTurn, SwitchingPolicyClearsItsMemory) {
  PoliciesInTurn policies(merging({3, 5}));
  EXPECT_EQ(remembered(policies, 0), 1);
  EXPECT_EQ(remembered(policies, 1), 2);
  policies.take(1);
  EXPECT_EQ(remembered(policies, 2), 1);
  EXPECT_EQ(remembered(policies, 1), 2);
  policies.take(0);
  EXPECT_EQ(remembered(policies, 2), 1);
}

TEST(PoliciesInTurn, UsesTheNameOfAMergingPolicy) {
  EXPECT_EQ(PoliciesInTurn(merging({kBaseModel, 3})).name(), "counting 3");
  EXPECT_EQ(PoliciesInTurn(merging({kBaseModel})).name(), "counting -1");
}

TEST(PoliciesInTurn, MergesIfAnyPolicyMerges) {
  EXPECT_TRUE(PoliciesInTurn(merging({kBaseModel, 3})).merges());
  EXPECT_FALSE(PoliciesInTurn(merging({kBaseModel})).merges());
}

}  // namespace
}  // namespace valora::scheduler
