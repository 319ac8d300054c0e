#include "sim/scenarios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace valora::sim {
namespace {

TEST(Scenarios, ComeInOrderAtTheirRateAndRepeatThemselves) {
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

// A later turn begins with an earlier turn's prompt and answer.
TEST(Scenarios, ATurnHoldsWhatWasSaidBefore) {
  const auto arrivals = make_scenario({.application = Application::kAgent, .rate = 2});
  int continued = 0;
  for (size_t i = 0; i < arrivals.size(); ++i)
    for (size_t j = i + 1; j < arrivals.size() && continued < 50; ++j) {
      const auto& first = arrivals[i].prompt;
      const auto& second = arrivals[j].prompt;
      if (second.size() <= first.size() ||
          !std::ranges::equal(first, std::span(second).first(first.size())))
        continue;
      ASSERT_EQ(arrivals[i].adapter, arrivals[j].adapter);
      EXPECT_EQ(second[first.size()], answer_token(i + 1, 0));
      ++continued;
    }
  EXPECT_EQ(continued, 50);
}

TEST(Scenarios, PopularityIsWhatItsNameSays) {
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
  EXPECT_EQ(used(Popularity::kSkewed, 600), 50u);  // its centre moves over all of them
  EXPECT_LT(used(Popularity::kSkewed, 20), used(Popularity::kUniform, 20));
}

}  // namespace
}  // namespace valora::sim
