#include "lab/serve/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace valora::bench {
namespace {

RequestRecord answered(const std::string& model, double sent, double first, double ended,
                       int tokens) {
  return {.model = model,
          .sent = sent,
          .ended = ended,
          .first_token = first,
          .prompt_tokens = 10,
          .completion_tokens = tokens,
          .wanted_tokens = tokens};
}

TEST(Distribution, InterpolatesBetweenTheNearestValues) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);  // 100 … 1, unsorted on purpose
  const Distribution d = distribution_of(values);
  EXPECT_EQ(d.count, 100u);
  EXPECT_DOUBLE_EQ(d.mean, 50.5);
  EXPECT_DOUBLE_EQ(d.p50, 50.5);
  EXPECT_DOUBLE_EQ(d.p90, 90.1);
  EXPECT_DOUBLE_EQ(d.p99, 99.01);
}

TEST(Distribution, HandlesOneValueAndNone) {
  const Distribution one = distribution_of({3});
  EXPECT_EQ(one.p50, 3);
  EXPECT_EQ(one.p99, 3);
  EXPECT_EQ(distribution_of({}).count, 0u);
}

TEST(Summary, ComputesTimesAndRates) {
  const std::vector<RequestRecord> records{answered("a", 1, 2, 6, 5),
                                           answered("b", 2, 2.5, 11, 18)};
  const Summary s = summarize(records);
  EXPECT_DOUBLE_EQ(s.seconds, 10);
  EXPECT_DOUBLE_EQ(s.requests_per_second, 0.2);
  EXPECT_DOUBLE_EQ(s.output_tokens_per_second, 2.3);
  EXPECT_DOUBLE_EQ(s.total_tokens_per_second, 4.3);
  EXPECT_DOUBLE_EQ(s.all.ttft.mean, 0.75);
  EXPECT_DOUBLE_EQ(s.all.tpot.mean, (4.0 / 4 + 8.5 / 17) / 2);
  EXPECT_DOUBLE_EQ(s.all.e2e.p50, 7);
  ASSERT_EQ(s.models.size(), 2u);
  EXPECT_EQ(s.models[0].first, "a");
  EXPECT_DOUBLE_EQ(s.models[1].second.ttft.p99, 0.5);
}

TEST(Summary, FailuresCountOnlyByTheirError) {
  std::vector<RequestRecord> records{answered("a", 0, 1, 2, 3), answered("a", 0, 1, 4, 3),
                                     answered("a", 0, 1, 9, 3)};
  records[1].error = records[2].error = "timed out";
  const Summary s = summarize(records);
  EXPECT_EQ(s.all.requests, 3);
  EXPECT_EQ(s.all.failed, 2);
  EXPECT_EQ(s.all.errors, (std::map<std::string, int>{{"timed out", 2}}));
  EXPECT_EQ(s.all.completion_tokens, 3);
  EXPECT_DOUBLE_EQ(s.all.e2e.p99, 2);
}

TEST(Summary, OnlyTheEndIsTimedWithoutStreaming) {
  const std::vector<RequestRecord> records{answered("a", 0, 0, 2, 3)};
  const Summary s = summarize(records);
  EXPECT_EQ(s.all.ttft.count, 0u);
  EXPECT_EQ(s.all.tpot.count, 0u);
  EXPECT_DOUBLE_EQ(s.all.e2e.mean, 2);
}

TEST(Summary, EarlyEndsAreCounted) {
  std::vector<RequestRecord> records{answered("a", 0, 1, 2, 3), answered("a", 0, 1, 2, 3)};
  records[0].wanted_tokens = 4;
  EXPECT_EQ(summarize(records).all.short_answers, 1);
}

}  // namespace
}  // namespace valora::bench
