#include "lab/serve/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace valora::bench {
namespace {

std::vector<double> gaps(const std::vector<double>& times) {
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

TEST(PoissonArrivals, GapsAreExponential) {
  constexpr double kRate = 4;
  constexpr int kCount = 100'000;
  double sum = 0, squares = 0;
  int beyond_mean = 0;
  for (const double gap : gaps(poisson_arrivals(kCount, kRate, 7))) {
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
    beyond_mean += gap > 1 / kRate;
  }
  const double mean = sum / (kCount - 1);
  EXPECT_NEAR(mean, 1 / kRate, 0.01 / kRate);
  EXPECT_NEAR(std::sqrt(squares / (kCount - 1) - mean * mean), 1 / kRate, 0.02 / kRate);
  EXPECT_NEAR(static_cast<double>(beyond_mean) / (kCount - 1), std::exp(-1), 0.01);
}

TEST(PoissonArrivals, BeginAtZeroAndDependOnTheSeed) {
  const auto times = poisson_arrivals(50, 2, 1);
  ASSERT_EQ(times.size(), 50u);
  EXPECT_EQ(times[0], 0);
  EXPECT_EQ(times, poisson_arrivals(50, 2, 1));
  EXPECT_NE(times, poisson_arrivals(50, 2, 2));
}

}  // namespace
}  // namespace valora::bench
