// The last steps, the last latencies, and the counts of adapters.
#include <gtest/gtest.h>

#include "server/metrics/adapter_counts.h"
#include "server/metrics/recent_latencies.h"
#include "server/metrics/step_ring.h"

namespace valora::server {
namespace {

TEST(StepRing, KeepsTheLastStepsAndGivesThoseAfterANumber) {
  StepRing ring;
  EXPECT_TRUE(ring.after(0).empty());
  for (int tokens = 1; tokens <= 300; ++tokens) ring.add({.tokens = tokens});
  const auto all = ring.after(0);
  ASSERT_EQ(all.size(), StepRing::kKept);
  EXPECT_EQ(all.front().number, 300 - StepRing::kKept + 1);
  EXPECT_EQ(all.back().record.tokens, 300);
  const auto last = ring.after(298);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].number, 299u);
  EXPECT_EQ(last[0].record.tokens, 299);
  EXPECT_TRUE(ring.after(300).empty());
}

TEST(RecentLatencies, HasQuantilesOfTheLastAnswers) {
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
  EXPECT_DOUBLE_EQ(latencies.summary().ttft->p50, 2);  // the first ones are forgotten
  EXPECT_DOUBLE_EQ(latencies.summary().tpot->p99, 0.1);
}

TEST(AdapterCounts, CountEachAdapterOfARequestAndForgetTheOldest) {
  AdapterCounts counts;
  Usage usage;
  usage.prompt_tokens = 10;
  usage.completion_tokens = 3;
  counts.answered({{"a", 1}, {"b", 1}}, usage);
  counts.answered({{"a", 1}}, usage);
  counts.answered({}, usage);
  const auto all = counts.all();
  EXPECT_EQ(all.at("a").requests, 2u);
  EXPECT_EQ(all.at("a").generated_tokens, 6u);
  EXPECT_EQ(all.at("b").prompt_tokens, 10u);
  EXPECT_EQ(all.at("").requests, 1u);
  for (size_t i = 0; i < 2 * AdapterCounts::kMostNames; ++i)
    counts.answered({{std::to_string(i), 1}}, usage);
  EXPECT_LE(counts.all().size(), AdapterCounts::kMostNames);
}

}  // namespace
}  // namespace valora::server
