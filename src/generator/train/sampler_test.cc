#include "generator/train/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "generator/train/optimizer.h"

namespace valora::generator {
namespace {

using Places = std::vector<std::pair<int, int64_t>>;

Places places(const std::vector<SamplePlace>& step) {
  Places found;
  for (const SamplePlace& place : step) found.emplace_back(place.source, place.index);
  return found;
}

TEST(StepSampler, VisitsAllSamplesBeforeRepeatingAny) {
  StepSampler sampler({{10, 1}}, 4, 7);
  std::vector<int64_t> drawn;
  for (int step = 0; step < 5; ++step)
    for (const SamplePlace& place : sampler.step(step)) drawn.push_back(place.index);
  const std::vector<int64_t> first(drawn.begin(), drawn.begin() + 10),
      second(drawn.begin() + 10, drawn.end());
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 10u);
  EXPECT_NE(first, second);
}

TEST(StepSampler, StepsDependOnlyOnTheSeed) {
  StepSampler straight({{13, 2}, {5, 1}, {7, 0.3}}, 6, 42),
      jumping({{13, 2}, {5, 1}, {7, 0.3}}, 6, 42), other({{13, 2}, {5, 1}, {7, 0.3}}, 6, 43);
  std::vector<Places> steps;
  for (int step = 0; step < 12; ++step) steps.push_back(places(straight.step(step)));
  for (const int step : {11, 3, 3, 0, 7})
    EXPECT_EQ(places(jumping.step(step)), steps[static_cast<size_t>(step)]) << step;
  EXPECT_NE(places(other.step(0)), steps[0]);
}

TEST(StepSampler, SourcesGetTheirConfiguredShares) {
  const std::vector<SampleSource> sources{{100, 0.5}, {3, 0.25}, {20, 0.15}, {9, 0.1}};
  StepSampler sampler(sources, 7, 1);
  std::map<int, int64_t> taken;
  for (int step = 0; step < 50; ++step) {
    const auto drawn = sampler.step(step);
    EXPECT_EQ(drawn.size(), 7u);
    for (const SamplePlace& place : drawn) {
      ++taken[place.source];
      EXPECT_LT(place.index, sources[static_cast<size_t>(place.source)].size);
    }
    for (const auto& [source, count] : taken)
      EXPECT_NEAR(static_cast<double>(count),
                  7.0 * (step + 1) * sources[static_cast<size_t>(source)].share, 2)
          << step << " " << source;
  }
}

TEST(StepSampler, UnshuffledKeepsTheOrder) {
  StepSampler sampler({{3, 1}}, 2, 9, /*shuffle=*/false);
  EXPECT_EQ(places(sampler.step(0)), (Places{{0, 0}, {0, 1}}));
  EXPECT_EQ(places(sampler.step(1)), (Places{{0, 2}, {0, 0}}));
}

TEST(CosineRate, WarmsUpAndFalls) {
  EXPECT_EQ(cosine_rate(0, 100, 10), 0);
  EXPECT_DOUBLE_EQ(cosine_rate(5, 100, 10), 0.5);
  EXPECT_DOUBLE_EQ(cosine_rate(10, 100, 10), 1);
  EXPECT_NEAR(cosine_rate(55, 100, 10), 0.5, 1e-12);
  EXPECT_NEAR(cosine_rate(99, 100, 10), 0.5 * (1 + std::cos(M_PI * 89 / 90)), 1e-12);
  EXPECT_DOUBLE_EQ(cosine_rate(0, 100, 0), 1);
}

}  // namespace
}  // namespace valora::generator
