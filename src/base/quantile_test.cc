#include "base/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace valora {
namespace {

TEST(Quantile, IsLinearBetweenSamples) {
  const std::vector<double> values{1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 4 + 0.7 * 4);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{5}, 0.3), 5);
}

}  // namespace
}  // namespace valora
