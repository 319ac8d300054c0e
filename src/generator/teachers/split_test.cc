#include "generator/teachers/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace valora::generator {
namespace {

std::vector<Sample> samples(int count) {
  std::vector<Sample> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    out[static_cast<size_t>(i)].origin = "picture " + std::to_string(i);
  return out;
}

std::vector<std::string> origins(const std::vector<Sample>& samples) {
  std::vector<std::string> out;
  for (const Sample& sample : samples) out.push_back(sample.origin);
  return out;
}

TEST(Split, TakesEachSampleOnceInTheGivenShare) {
  const auto split = split_samples(samples(200), 0.1, 1);
  EXPECT_EQ(split.validation.size(), 20u);
  auto all = origins(split.train);
  std::ranges::copy(origins(split.validation), std::back_inserter(all));
  auto expected = origins(samples(200));
  std::ranges::sort(all);
  std::ranges::sort(expected);
  EXPECT_EQ(all, expected);
}

TEST(Split, DependsOnTheSeed) {
  const auto first = origins(split_samples(samples(50), 0.3, 1).validation);
  EXPECT_EQ(first, origins(split_samples(samples(50), 0.3, 1).validation));
  EXPECT_NE(first, origins(split_samples(samples(50), 0.3, 2).validation));
}

TEST(Split, DoesNotDependOnInputOrder) {
  auto turned = samples(50);
  std::ranges::reverse(turned);
  auto there = origins(split_samples(samples(50), 0.3, 1).validation),
       back = origins(split_samples(turned, 0.3, 1).validation);
  std::ranges::reverse(back);
  EXPECT_EQ(there, back);
}

TEST(Split, LeavesNoPartEmpty) {
  for (const double share : {0.01, 0.99}) {
    const auto split = split_samples(samples(3), share, 7);
    EXPECT_FALSE(split.train.empty()) << share;
    EXPECT_FALSE(split.validation.empty()) << share;
  }
  EXPECT_TRUE(split_samples(samples(3), 0, 7).validation.empty());
  EXPECT_TRUE(split_samples(samples(3), 1, 7).train.empty());
  EXPECT_TRUE(split_samples({}, 0.5, 7).train.empty());
}

}  // namespace
}  // namespace valora::generator
