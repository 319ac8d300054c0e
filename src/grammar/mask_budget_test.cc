#include "grammar/mask_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::grammar {
namespace {

// Charges choices, each in a step of its own.
void charge(MaskAccount& account, double seconds, int steps = 1) {
  for (int i = 0; i < steps; ++i) account.charge(StepMasks(1), seconds);
}

TEST(MaskAccount, EndsARequestThatOverspends) {
  MaskAccount account({.most = 1, .token = 0.25});
  EXPECT_TRUE(account.check().ok());
  charge(account, 0.75);
  charge(account, 0.5);
  EXPECT_TRUE(account.check().ok()) << "nothing is left, and nothing owed";
  charge(account, 0.5);
  const Status over = account.check();
  EXPECT_EQ(over.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(over.error().message, ::testing::HasSubstr("too complex"));
}

TEST(MaskAccount, SavingsAreCapped) {
  MaskAccount account({.most = 1, .token = 0.25});
  charge(account, 0, 1000);
  charge(account, 1);
  EXPECT_TRUE(account.check().ok());
  charge(account, 0.5);
  EXPECT_FALSE(account.check().ok());
  charge(account, 0.25, 1000);
  EXPECT_FALSE(account.check().ok()) << "what they take is what they earn";
}

TEST(MaskAccount, ChoicesOfAStepDoNotEarnLikeSteps) {
  MaskAccount account({.most = 1, .token = 0.25, .further = 0.125});
  for (int round = 0; round < 3; ++round) {
    const StepMasks step(1);
    for (int choice = 0; choice < 3; ++choice) account.charge(step, 0.25);
  }
  EXPECT_TRUE(account.check().ok()) << "nothing is left, and nothing owed";
  charge(account, 0.375);
  EXPECT_FALSE(account.check().ok());
}

TEST(MaskAccount, LimitsTheMemoryOfAllMatchers) {
  MaskAccount account({.bytes = 3 << 20});
  account.hold(2 << 20);
  account.hold(1 << 20);
  EXPECT_TRUE(account.check().ok());
  account.hold(1);
  EXPECT_EQ(account.check().error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(account.check().error().message, ::testing::HasSubstr("more than 3 MiB"));
  account.hold(-(2 << 20));
  EXPECT_TRUE(account.check().ok()) << "one of them is gone";
}

TEST(MaskAccount, UnlimitedWithoutAnAllowance) {
  MaskAccount account({.most = 0, .token = 0});
  EXPECT_TRUE(account.check().ok());
  charge(account, 1e-9);
  EXPECT_FALSE(account.check().ok());
}

TEST(MaskAccount, PredictsCostFromPastSlowMasks) {
  MaskAccount account({});
  EXPECT_DOUBLE_EQ(account.expected(), MaskAccount::kUnknown);
  charge(account, 0.2);
  EXPECT_DOUBLE_EQ(account.expected(), 0.2);
  charge(account, 1e-4);
  EXPECT_GT(account.expected(), 0.1) << "one cheap token among slow ones";
  charge(account, 1e-4, 200);
  EXPECT_DOUBLE_EQ(account.expected(), 1e-4);
}

TEST(StepMasks, AlwaysMakesTheFirstMask) {
  StepMasks none(0);
  EXPECT_TRUE(none.begin());
  EXPECT_FALSE(none.begin());
  EXPECT_FALSE(none.begin());
}

TEST(StepMasks, DefersLaterMasksOnceTheTimeIsSpent) {
  StepMasks step(0.1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(step.begin()) << i;
    step.charge(0.04);
  }
  EXPECT_FALSE(step.begin());
}

TEST(StepMasks, CheapMasksGoFirstWithoutStarvingSlowOnes) {
  MaskAccount cheap{{}}, slow{{}}, fresh{{}};
  charge(cheap, 1e-4, 100);
  charge(slow, 0.05);
  EXPECT_LT(turn_of(cheap, 0), turn_of(fresh, 0));
  EXPECT_LT(turn_of(fresh, 0), turn_of(slow, 0));
  EXPECT_LT(turn_of(cheap, 0), turn_of(slow, 100));
  EXPECT_LT(turn_of(slow, 1000), turn_of(cheap, 0));
}

}  // namespace
}  // namespace valora::grammar
