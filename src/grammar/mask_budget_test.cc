#include "grammar/mask_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::grammar {
namespace {

TEST(MaskAccount, EndsARequestThatOverspends) {
  MaskAccount account({.most = 1, .token = 0.25});
  EXPECT_TRUE(account.check().ok());
  account.charge(0.75);
  account.charge(0.5);
  EXPECT_TRUE(account.check().ok()) << "nothing is left, and nothing owed";
  account.charge(0.5);
  const Status over = account.check();
  EXPECT_EQ(over.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(over.error().message, ::testing::HasSubstr("too complex"));
}

TEST(MaskAccount, SavingsAreCapped) {
  MaskAccount account({.most = 1, .token = 0.25});
  for (int i = 0; i < 1000; ++i) account.charge(0);
  account.charge(1);
  EXPECT_TRUE(account.check().ok());
  account.charge(0.5);
  EXPECT_FALSE(account.check().ok());
  for (int i = 0; i < 1000; ++i) account.charge(0.25);
  EXPECT_FALSE(account.check().ok()) << "what they take is what they earn";
}

TEST(MaskAccount, UnlimitedWithoutAnAllowance) {
  MaskAccount account({.most = 0, .token = 0});
  EXPECT_TRUE(account.check().ok());
  account.charge(1e-9);
  EXPECT_FALSE(account.check().ok());
}

TEST(MaskAccount, PredictsCostFromPastSlowMasks) {
  MaskAccount account({});
  EXPECT_DOUBLE_EQ(account.expected(), MaskAccount::kUnknown);
  account.charge(0.2);
  EXPECT_DOUBLE_EQ(account.expected(), 0.2);
  account.charge(1e-4);
  EXPECT_GT(account.expected(), 0.1) << "one cheap token among slow ones";
  for (int i = 0; i < 200; ++i) account.charge(1e-4);
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
  for (int i = 0; i < 100; ++i) cheap.charge(1e-4);
  slow.charge(0.05);
  EXPECT_LT(turn_of(cheap, 0), turn_of(fresh, 0));
  EXPECT_LT(turn_of(fresh, 0), turn_of(slow, 0));
  EXPECT_LT(turn_of(cheap, 0), turn_of(slow, 100));
  EXPECT_LT(turn_of(slow, 1000), turn_of(cheap, 0));
}

}  // namespace
}  // namespace valora::grammar
