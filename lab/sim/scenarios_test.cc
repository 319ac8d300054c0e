#include "lab/sim/scenarios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace valora::sim {
namespace {

TEST(Scenarios, ArrivalsAreOrderedAtRateAndReproducible) {
  for (const auto application :
       {Application::kChat, Application::kTranslation, Application::kAgent}) {
    const ScenarioConfig config{.application = application, .rate = 5, .seconds = 400};
    const auto arrivals = make_scenario(config), again = make_scenario(config);
    EXPECT_TRUE(std::ranges::is_sorted(arrivals, {}, &Arrival::at));
    EXPECT_GT(arrivals.size(), 5 * 400 * 0.6);
    EXPECT_LT(arrivals.size(), 5 * 400 * 1.4);
    ASSERT_EQ(arrivals.size(), again.size());
    for (size_t i = 0; i < arrivals.size(); ++i) ASSERT_EQ(arrivals[i].prompt, again[i].prompt);
  }
}

TEST(Scenarios, TurnContainsEarlierTurns) {
  const auto arrivals = make_scenario({.application = Application::kAgent, .rate = 2});
  int continued = 0;
  for (const Arrival& arrival : arrivals) {
    if (!arrival.previous) continue;
    const Arrival& before = arrivals[*arrival.previous];
    const auto& first = before.prompt;
    const auto& second = arrival.prompt;
    ASSERT_GT(second.size(), first.size() + static_cast<size_t>(before.answer_tokens));
    EXPECT_TRUE(std::ranges::equal(first, std::span(second).first(first.size())));
    EXPECT_EQ(arrival.adapter, before.adapter);
    for (int i = 0; i < before.answer_tokens; ++i)
      EXPECT_EQ(second[first.size() + static_cast<size_t>(i)],
                answer_token(*arrival.previous + 1, i));
    ++continued;
  }
  EXPECT_GT(continued, 50);
}

TEST(Scenarios, PopularityDeterminesAdaptersInUse) {
  const auto used = [](Popularity popularity, double seconds) {
    std::set<int> adapters;
    for (const Arrival& arrival : make_scenario({.application = Application::kTranslation,
                                                 .popularity = popularity,
                                                 .adapters = 50,
                                                 .rate = 10,
                                                 .seconds = 600}))
      if (arrival.at < from_seconds(seconds)) adapters.insert(arrival.adapter);
    return adapters.size();
  };
  EXPECT_EQ(used(Popularity::kDistinct, 600), 50u);
  EXPECT_EQ(used(Popularity::kUniform, 600), 50u);
  EXPECT_EQ(used(Popularity::kSkewed, 600), 50u);  // its centre moves across all of them
  EXPECT_LT(used(Popularity::kSkewed, 20), used(Popularity::kUniform, 20));
}

}  // namespace
}  // namespace valora::sim
