#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lab/sim/vision_workload.h"
#include "lab/trace/gpu_model.h"
#include "lab/trace/simulated_trace.h"

namespace valora::bench {
namespace {

TEST(TraceSummary, ComputesTheFiguresOfAFewAnswers) {
  const std::vector<ServedAnswer> answers{{0, 0.5, 2.5, 5}, {1, 2, 2, 1}, {2, 2.1, 4, 20}};
  const TraceSummary summary = summary_of(answers, 1, 0.6);
  EXPECT_EQ(summary.answers, 3u);
  EXPECT_DOUBLE_EQ(summary.requests_per_second, 3 / 4.0);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 26 / 4.0);
  EXPECT_DOUBLE_EQ(summary.token_latency, (2.5 + 1 + 2) / 26);
  EXPECT_NEAR(summary.ttft.mean, (0.5 + 1 + 0.1) / 3, 1e-12);
  EXPECT_DOUBLE_EQ(summary.ttft.p50, 0.5);
  EXPECT_DOUBLE_EQ(summary.ttft.p99, 0.99);
  EXPECT_NEAR(summary.tpot.mean, (0.5 + 0.1) / 2, 1e-12) << "not of an answer with one token";
  EXPECT_DOUBLE_EQ(summary.attainment, 2 / 4.0) << "a failed request missed its target";
}

TEST(TraceSummary, IsZeroWithoutAnswers) {
  const TraceSummary summary = summary_of(std::span<const ServedAnswer>(), 0, 1);
  EXPECT_EQ(summary.requests_per_second, 0);
  EXPECT_EQ(summary.attainment, 0);
}

TEST(TraceSummary, AveragesOverRounds) {
  const TraceSummary rounds[] = {{.answers = 10, .token_latency = 1, .ttft = {1, 2, 3}},
                                 {.answers = 20, .token_latency = 3, .ttft = {3, 4, 5}}};
  const TraceSummary mean = mean_of(rounds);
  EXPECT_EQ(mean.answers, 15u);
  EXPECT_DOUBLE_EQ(mean.token_latency, 2);
  EXPECT_DOUBLE_EQ(mean.ttft.p99, 4);
}

// VaLoRA's figures 19 and 22, in simulated time with published costs.
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

// The order of the systems in VaLoRA's figure 22: VaLoRA, S-LoRA, Punica, dLoRA.
TEST(SimulatedTrace, WholeSystemsRankAsInThePaper) {
  const auto arrivals =
      sim::make_workload({.rate = 4, .adapters = 10, .seconds = 30, .answer_max = 100});
  const SimulatedServer server{.costs = a100_costs(), .rank = 64};
  std::map<std::string, double> latency;
  for (const TraceSystem& system : trace_systems())
    latency[system.name] = run_simulated(system, server, *arrivals, 6)->token_latency;
  EXPECT_GT(latency["Punica system"], 1.05 * latency["unmerged"]);
  EXPECT_GT(latency["S-LoRA system"], 1.02 * latency["valora"]);
  EXPECT_GT(latency["Punica system"], 1.02 * latency["S-LoRA system"]);
  EXPECT_GT(latency["dLoRA system"], 1.02 * latency["Punica system"]);
}

// VaLoRA's table 3: twice as many servers serve about twice as much.
TEST(SimulatedTrace, ThroughputGrowsWithReplicas) {
  const auto arrivals = sim::make_workload({.rate = 60, .adapters = 10, .seconds = 20});
  const SimulatedServer server{.costs = a100_costs()};
  const TraceSystem& valora = trace_systems().front();
  const auto one = run_simulated(valora, server, *arrivals, 6);
  const auto two = run_simulated(valora, server, *arrivals, 6, 2);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(two->answers, arrivals->size());
  EXPECT_GT(two->tokens_per_second, 1.6 * one->tokens_per_second);
  EXPECT_LT(two->ttft.mean, one->ttft.mean);
}

// Each of two ranks reads half of the weights and waits for the other; the memory of two GPUs
// leaves room for more than twice the KV.
TEST(SimulatedGpus, RanksDivideWorkAndMemory) {
  for (const std::string& model : simulated_models()) {
    SCOPED_TRACE(model);
    const auto one = simulated_gpus(model, 1), two = simulated_gpus(model, 2),
               four = simulated_gpus(model, 4);
    ASSERT_TRUE(one.ok() && two.ok() && four.ok());
    EXPECT_GT(two->costs.step, 0.5 * one->costs.step);
    EXPECT_LT(two->costs.step, 0.6 * one->costs.step);
    EXPECT_LT(four->costs.step, 0.6 * two->costs.step);
    EXPECT_EQ(one->costs.token, 0);
    EXPECT_GT(four->costs.token, two->costs.token);
    EXPECT_GT(two->costs.rank, 0.5 * one->costs.rank) << "whole factors are read by each rank";
    EXPECT_GT(two->pool_blocks, 2 * one->pool_blocks);
  }
  EXPECT_GT(simulated_gpus("34b", 2)->pool_blocks, 20 * simulated_gpus("34b", 1)->pool_blocks);
}

TEST(SimulatedGpus, UnknownModelsAndUnevenRanksAreRefused) {
  EXPECT_EQ(simulated_gpus("8b", 1).error().message, "unknown model '8b'; known: 7b, 34b");
  EXPECT_FALSE(simulated_gpus("34b", 3).ok());
  EXPECT_FALSE(simulated_gpus("7b", 0).ok());
}

// Each conversation stays on one server, where it is cached.
TEST(SimulatedTrace, ConversationsStayOnTheirReplica) {
  const auto arrivals = sim::make_retrieval(
      {.first = {.rate = 1, .adapters = 2, .seconds = 30, .answer_max = 64}, .questions = 4});
  const SimulatedServer server{.costs = a100_costs()};
  const TraceSystem& valora = trace_systems().front();
  const auto cached = run_simulated(valora, server, *arrivals, 6, 3);
  TraceSystem uncached = valora;
  uncached.prefix_caching = false;
  const auto computed = run_simulated(uncached, server, *arrivals, 6, 3);
  ASSERT_TRUE(cached.ok() && computed.ok());
  EXPECT_EQ(cached->failed, 0u);
  EXPECT_LT(cached->ttft.mean, 0.8 * computed->ttft.mean);
}

// The requests about a frame stay on one server, where the frame is computed once.
TEST(SimulatedTrace, SkillsOfAFrameStayOnItsReplica) {
  const auto arrivals = sim::make_streams({.streams = 100,
                                           .frames = 1,
                                           .answer_min = 2,
                                           .answer_max = 2,
                                           .adapters = 4,
                                           .skills = 4,
                                           .activated = true,
                                           .seconds = 4});
  const SimulatedServer server{.costs = a100_costs()};
  auto apart = *arrivals;
  for (sim::Arrival& arrival : apart) arrival.pictures_of.reset();
  const TraceSystem& valora = trace_systems().front();
  const auto together = run_simulated(valora, server, *arrivals, 6, 4);
  const auto scattered = run_simulated(valora, server, apart, 6, 4);
  ASSERT_TRUE(together.ok() && scattered.ok());
  EXPECT_EQ(together->answers, 100u * 4 * 4);
  EXPECT_LT(together->ttft.mean, 0.5 * scattered->ttft.mean);
}

TEST(Timeline, StepsCountInTheIntervalOfTheirStart) {
  Timeline timeline(0.5);
  timeline.add(0.2, {.tokens = 3, .sequences = 1, .seconds = 0.2});
  timeline.add(0.6, {.tokens = 2,
                     .sequences = 1,
                     .seconds = 0.2,
                     .mode = "merged",
                     .switched = true,
                     .merged = true,
                     .weights_seconds = 0.05});
  timeline.add(1.7, {.tokens = 4, .sequences = 2, .seconds = 0.1, .mode = "mixture"});
  ASSERT_EQ(timeline.intervals().size(), 4u);
  const TimelineInterval& first = timeline.intervals()[0];
  EXPECT_EQ(first.steps, 2);
  EXPECT_EQ(first.tokens, 5);
  EXPECT_DOUBLE_EQ(first.seconds[0], 0.2);
  EXPECT_DOUBLE_EQ(first.seconds[1], 0.2);
  EXPECT_EQ(first.merges, 1);
  EXPECT_EQ(timeline.intervals()[1].steps, 0);
  EXPECT_DOUBLE_EQ(timeline.intervals()[3].seconds[2], 0.1);
  ASSERT_EQ(timeline.writes().size(), 1u);
  EXPECT_DOUBLE_EQ(timeline.writes()[0].at, 0.6);
  EXPECT_DOUBLE_EQ(timeline.total().weights_seconds, 0.05);
}

// The modes follow a shifting load.
TEST(Timeline, ShowsALoadShiftOfASimulatedRun) {
  const auto arrivals = sim::make_workload({.rate = 8,
                                            .shares = sim::AdapterShares::kSkewed,
                                            .phases = {1, 0.1},
                                            .adapters = 10,
                                            .seconds = 60,
                                            .prompt_max = 300,
                                            .answer_max = 100});
  const SimulatedServer server{.costs = a100_costs(), .rank = 64};
  Timeline timeline(30);
  const auto summary = run_simulated(trace_systems().front(), server, *arrivals, 6, 1, &timeline);
  ASSERT_TRUE(summary.ok());
  ASSERT_GE(timeline.intervals().size(), 2u);
  const auto merged_share = [&](size_t i) {
    const auto& seconds = timeline.intervals()[i].seconds;
    return seconds[1] / (seconds[0] + seconds[1] + seconds[2]);
  };
  EXPECT_GT(merged_share(0), 0.8);
  EXPECT_LT(merged_share(1), 0.4);
  EXPECT_EQ(static_cast<uint64_t>(timeline.total().merges), summary->merges);
  EXPECT_DOUBLE_EQ(timeline.total().weights_seconds, summary->weights_seconds);
}

}  // namespace
}  // namespace valora::bench
