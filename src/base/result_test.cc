#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace valora {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("odd", "n");
  return n / 2;
}

Result<int> quarter(int n) {
  VALORA_TRY(h, half(n));
  VALORA_TRY(q, half(h));
  return q;
}

Status check_quarter(int n) {
  VALORA_CHECK(quarter(n));
  return {};
}

TEST(ResultTest, TryUnwrapsOrReturnsTheFirstError) {
  ASSERT_TRUE(quarter(12).ok());
  EXPECT_EQ(*quarter(12), 3);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message, "odd");
  EXPECT_EQ(failed.error().param, "n");
}

TEST(ResultTest, CheckPassesErrorsOn) {
  EXPECT_TRUE(check_quarter(4).ok());
  EXPECT_EQ(check_quarter(5).error().message, "odd");
}

TEST(ResultTest, HoldsMoveOnlyTypes) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

}  // namespace
}  // namespace valora
