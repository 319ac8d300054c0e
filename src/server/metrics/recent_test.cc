// Recent steps, recent latencies, and the counts of adapters.
#include <gtest/gtest.h>

#include "server/metrics/adapter_counts.h"
#include "server/metrics/recent_latencies.h"
#include "server/metrics/step_ring.h"

namespace valora::server {
namespace {

TEST(StepRing, ReturnsKeptStepsAfterAGivenNumber) {
  constexpr int kSteps = static_cast<int>(StepRing::kKept) + 44;
  StepRing ring;
  EXPECT_TRUE(ring.after(0).empty());
  for (int tokens = 1; tokens <= kSteps; ++tokens) ring.add({.tokens = tokens});
  const auto all = ring.after(0);
  ASSERT_EQ(all.size(), StepRing::kKept);
  EXPECT_EQ(all.front().number, 45u);
  EXPECT_EQ(all.back().record.tokens, kSteps);
  EXPECT_EQ(ring.count(), static_cast<uint64_t>(kSteps));
  const auto last = ring.after(kSteps - 2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].number, kSteps - 1u);
  EXPECT_EQ(last[0].record.tokens, kSteps - 1);
  EXPECT_TRUE(ring.after(kSteps).empty());
}

TEST(StepRing, JoinsManyStepsWithoutLosingAny) {
  StepRing ring;
  for (int i = 0; i < 1001; ++i)
    ring.add({.tokens = 3,
              .sequences = 1 + i % 7,
              .seconds = 0.5,
              .mode = i % 4 == 0 ? "merged" : "unmerged",
              .switched = i == 500,
              .prefill_tokens = 2,
              .adapters = i % 3});
  const auto all = ring.after(0);
  EXPECT_EQ(joined(all, 1001).size(), 1001u);
  const auto few = joined(all, 256);
  ASSERT_EQ(few.size(), 251u);  // 250 groups of four steps, and a last one
  int steps = 0, tokens = 0, prefill = 0, switches = 0;
  double seconds = 0;
  for (const StepRing::Step& step : few) {
    steps += step.steps;
    tokens += step.record.tokens;
    prefill += step.record.prefill_tokens;
    seconds += step.record.seconds;
    switches += step.record.switched;
    EXPECT_EQ(step.number, static_cast<uint64_t>(steps));
    if (step.steps == 4) {
      EXPECT_EQ(step.record.mode, "unmerged");
    }
  }
  EXPECT_EQ(std::tuple(steps, tokens, prefill, switches), std::tuple(1001, 3003, 2002, 1));
  EXPECT_DOUBLE_EQ(seconds, 500.5);
  EXPECT_EQ(few[1].record.sequences, 7);  // the maximum of 5, 6, 7 and 1
  EXPECT_EQ(few[1].record.adapters, 2);
}

TEST(StepRing, NeverJoinsStepsAcrossAPause) {
  std::vector<StepRing::Step> steps;
  for (int i = 0; i < 40; ++i) {
    const double began = i + (i >= 21 ? 5 : 0);
    steps.push_back({static_cast<uint64_t>(i + 1), began + 1, {.tokens = 1, .seconds = 1}, began});
  }
  const auto few = joined(steps, 10);  // groups of four; one ends at the pause
  ASSERT_EQ(few.size(), 11u);
  EXPECT_EQ(few[5].steps, 1);
  EXPECT_EQ(few[5].ended, 21);
  EXPECT_EQ(few[6].began, 26);
  for (StepRing::Step& step : steps) step.ended -= 0.25;  // puts a pause after each step
  const auto last = joined(steps, 10);
  ASSERT_EQ(last.size(), 20u);  // the older ones are left out
  for (const StepRing::Step& step : last) EXPECT_EQ(step.steps, 1);
  EXPECT_EQ(last.front().number, 21u);
  EXPECT_EQ(last.back().number, 40u);
}

TEST(RecentLatencies, ReportsQuantilesOfLastAnswers) {
  RecentLatencies latencies;
  EXPECT_FALSE(latencies.summary().ttft);
  for (int i = 0; i <= 100; ++i) latencies.add({.ttft = i / 100.0, .e2e = 5});
  const auto summary = latencies.summary();
  EXPECT_EQ(summary.answers, 101u);
  EXPECT_DOUBLE_EQ(summary.ttft->p50, 0.5);
  EXPECT_DOUBLE_EQ(summary.ttft->p99, 0.99);
  EXPECT_FALSE(summary.tpot);  // no answer had a second token
  for (size_t i = 0; i < RecentLatencies::kKept; ++i) latencies.add({.ttft = 2, .tpot = 0.1});
  EXPECT_EQ(latencies.summary().answers, RecentLatencies::kKept);
  EXPECT_DOUBLE_EQ(latencies.summary().ttft->p50, 2);  // the first ones have been dropped
  EXPECT_DOUBLE_EQ(latencies.summary().tpot->p99, 0.1);
}

TEST(AdapterCounts, CountsEveryAdapterOfARequestAndDropsOldest) {
  AdapterCounts counts;
  Usage usage;
  usage.prompt_tokens = 10;
  usage.completion_tokens = 3;
  counts.answered({{"a", 1}, {"b", 1}}, usage, {.ttft = 0.02});
  counts.answered({{"a", 1}}, usage, {.ttft = 0.02});
  counts.answered({}, usage, {.ttft = 0.02, .tpot = 0.001});
  const auto all = counts.all();
  EXPECT_EQ(all.at("a").requests, 2u);
  EXPECT_EQ(all.at("a").generated_tokens, 6u);
  EXPECT_EQ(all.at("b").prompt_tokens, 10u);
  EXPECT_EQ(all.at("").requests, 1u);
  EXPECT_EQ(all.at("a").ttft.counts[4], 2u);  // bucket up to 25 ms
  EXPECT_DOUBLE_EQ(all.at("a").ttft.seconds, 0.04);
  EXPECT_EQ(all.at("a").tpot.seconds, 0);  // no answer had a second token
  EXPECT_EQ(all.at("").tpot.counts[0], 1u);
  EXPECT_NEAR(all.at("a").heat - all.at("b").heat, 1, 0.01);  // log2 of twice the requests
  for (size_t i = 0; i < 2 * AdapterCounts::kMostNames; ++i)
    counts.answered({{std::to_string(i), 1}}, usage, {.ttft = 0.02});
  EXPECT_LE(counts.all().size(), AdapterCounts::kMostNames);
}

}  // namespace
}  // namespace valora::server
