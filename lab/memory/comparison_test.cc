#include "lab/memory/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace valora::bench {
namespace {

// Chats on a pool that is too small for their histories and adapters.
TEST(MemoryComparison, PoolBeatsRivalsWhenMemoryIsShort) {
  sim::ScenarioConfig scenario;
  scenario.adapters = 100;
  scenario.rate = 4;
  scenario.seconds = 200;
  const auto runs = compare(scenario, {}, false);
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ASSERT_EQ(runs->size(), compared_variants().size());
  const auto run = [&](const std::string& variant) {
    return *std::ranges::find(*runs, variant, &ComparedRun::variant);
  };
  const ComparedRun whole = run("whole"), fixed = run("fixed share"), none = run("no history");
  EXPECT_LT(whole.ttft, fixed.ttft);
  EXPECT_LT(whole.ttft, 0.5 * none.ttft);
  EXPECT_EQ(run("benefit").invalid_kv, 0);
  EXPECT_GT(fixed.invalid_kv, 0.05);
  EXPECT_GT(whole.kv_hits, 0.5);
}

TEST(MemoryComparison, EqualSeedsGiveEqualRuns) {
  sim::ScenarioConfig scenario;
  scenario.application = sim::Application::kAgent;
  scenario.seconds = 60;
  const auto first = compare(scenario, {}, false), second = compare(scenario, {}, false);
  for (size_t i = 0; i < first->size(); ++i) {
    EXPECT_EQ((*first)[i].ttft, (*second)[i].ttft);
    EXPECT_EQ((*first)[i].tpot, (*second)[i].tpot);
  }
}

TEST(MemoryComparison, MeansUpToThePeakEqualThoseOfTheRates) {
  sim::ScenarioConfig scenario;
  scenario.adapters = 50;
  scenario.seconds = 40;
  const auto swept = compare_up_to_peak(scenario, {});
  ASSERT_TRUE(swept.ok()) << swept.error().message;
  const Peak peak = *swept->front().peak;
  EXPECT_GT(peak.rate, 1);
  double ttft = 0, hits = 0;
  for (int i = 1; i <= kSweptRates; ++i) {
    scenario.rate = peak.rate * i / kSweptRates;
    const auto runs = compare(scenario, {}, false);
    ttft += (*runs)[1].ttft / kSweptRates;
    hits += (*runs)[1].kv_hits / kSweptRates;
  }
  EXPECT_DOUBLE_EQ((*swept)[1].ttft, ttft);
  EXPECT_DOUBLE_EQ((*swept)[1].kv_hits, hits);
  EXPECT_LT(swept->front().ttft, kPeakTtft);
}

TEST(MemoryComparison, PeakIsWhereTtftReachesHalfASecond) {
  const auto peak = [](std::vector<RatePoint> points) { return text_of(peak_of(points)); };
  EXPECT_EQ(peak({{1, 0.6}, {2, 0.4}}), "0.0");
  EXPECT_EQ(peak({{1, 0.1}, {2, 0.4}}), "≥2.0");
  EXPECT_EQ(peak({{1, 0.1}, {2, 0.3}, {4, 0.7}}), "3.0");
  EXPECT_EQ(peak({{1, 0.1}, {2, 0.9}, {4, 0.4}}), "1.5");
  EXPECT_EQ(peak({{1, 0.1}, {2, 0.2, true}}), "≥1.0");
  EXPECT_EQ(text_of(std::nullopt), "–");
}

TEST(MemoryComparison, FailedRequestsOfLiveRoundsCountOnlyAsFailures) {
  LiveReport round;
  round.answers.resize(3);
  round.answers[0].error = internal("broken");
  for (LiveAnswer& answer : round.answers) {
    answer.timings = {.queue_seconds = 0.1, .decode_seconds = 0.4, .ttft_seconds = 0.5};
    answer.tokens = {7, 7, 7};
  }
  const std::vector<LiveReport> rounds{round, round};
  const ComparedRun run = summary_of(rounds);
  EXPECT_EQ(run.failed, 2u);
  EXPECT_DOUBLE_EQ(run.ttft, 0.5);
  EXPECT_DOUBLE_EQ(run.tpot, 0.2);
}

}  // namespace
}  // namespace valora::bench
