#include <gtest/gtest.h>

#include "bench/trace/simulated_trace.h"
#include "sim/workload.h"

namespace valora::bench {
namespace {

TEST(TraceSummary, FiguresOfAFewAnswers) {
  const std::vector<ServedAnswer> answers{{0, 0.5, 2.5, 5}, {1, 2, 2, 1}, {2, 2.1, 4, 20}};
  const TraceSummary summary = summary_of(answers, 1, 0.6);
  EXPECT_EQ(summary.answers, 3u);
  EXPECT_DOUBLE_EQ(summary.requests_per_second, 3 / 4.0);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 26 / 4.0);
  EXPECT_DOUBLE_EQ(summary.token_latency, (2.5 + 1 + 2) / 26);
  EXPECT_NEAR(summary.ttft.mean, (0.5 + 1 + 0.1) / 3, 1e-12);
  EXPECT_DOUBLE_EQ(summary.ttft.p50, 0.5);
  EXPECT_DOUBLE_EQ(summary.ttft.p99, 1);
  EXPECT_NEAR(summary.tpot.mean, (0.5 + 0.1) / 2, 1e-12) << "not of an answer with one token";
  EXPECT_DOUBLE_EQ(summary.attainment, 2 / 4.0) << "a failed request missed its target";
}

TEST(TraceSummary, OfNothing) {
  const TraceSummary summary = summary_of(std::span<const ServedAnswer>(), 0, 1);
  EXPECT_EQ(summary.requests_per_second, 0);
  EXPECT_EQ(summary.attainment, 0);
}

TEST(TraceSummary, MeansOfRounds) {
  const TraceSummary rounds[] = {{.answers = 10, .token_latency = 1, .ttft = {1, 2, 3}},
                                 {.answers = 20, .token_latency = 3, .ttft = {3, 4, 5}}};
  const TraceSummary mean = mean_of(rounds);
  EXPECT_EQ(mean.answers, 15u);
  EXPECT_DOUBLE_EQ(mean.token_latency, 2);
  EXPECT_DOUBLE_EQ(mean.ttft.p99, 4);
}

// VaLoRA's figures 19 and 22, in simulated time by published costs.
TEST(SimulatedTrace, ValoraIsWithinThreePercentOfTheBestAtEverySkewness) {
  for (const double skewness : {0.1, 0.3, 0.5, 0.7, 0.9}) {
    SCOPED_TRACE(skewness);
    const auto arrivals = sim::make_workload({.rate = 6,
                                              .shares = sim::AdapterShares::kSkewed,
                                              .skewness = skewness,
                                              .adapters = 10,
                                              .seconds = 60,
                                              .prompt_max = 300,
                                              .answer_max = 250});
    ASSERT_TRUE(arrivals.ok()) << arrivals.error().message;
    const SimulatedServer server{.costs = a100_costs(), .rank = 64};
    double best = 1e9, valora = 0;
    for (const TraceSystem& system : trace_systems()) {
      const auto summary = run_simulated(system, server, *arrivals, 6);
      ASSERT_TRUE(summary.ok()) << summary.error().message;
      EXPECT_EQ(summary->failed, 0u) << system.name;
      best = std::min(best, summary->token_latency);
      if (system.name == "valora") valora = summary->token_latency;
    }
    EXPECT_LE(valora, 1.03 * best);
  }
}

TEST(SimulatedTrace, ARivalsOperatorsCostMore) {
  const auto arrivals =
      sim::make_workload({.rate = 4, .adapters = 10, .seconds = 30, .answer_max = 100});
  const SimulatedServer server{.costs = a100_costs(), .rank = 64};
  double unmerged = 0, punica = 0;
  for (const TraceSystem& system : trace_systems()) {
    const auto summary = run_simulated(system, server, *arrivals, 6);
    if (system.name == "unmerged") unmerged = summary->token_latency;
    if (system.name == "Punica system") punica = summary->token_latency;
  }
  EXPECT_GT(punica, 1.05 * unmerged);
}

}  // namespace
}  // namespace valora::bench
