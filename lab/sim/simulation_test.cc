#include "lab/sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace valora::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// 10 ms per step, 1 ms per prompt token, 2 ms per decode token, 5 ms per segment.
const scheduler::StepCosts kCost{
    .step = 0.010, .prefill_token = 0.001, .decode_token = 0.002, .segment = 0.005};

std::vector<int32_t> prompt(int tokens, int32_t first = 0) {
  std::vector<int32_t> ids(tokens);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// Invariants that must hold after every step.
void check(const scheduler::Scheduler& scheduler, const scheduler::StepReport&, Duration) {
  ASSERT_EQ(scheduler.check(), "");
}

SimulationReport run(const SimulationConfig& config, std::vector<Arrival> arrivals,
                     const StepCost& cost = kCost) {
  auto report = simulate(config, std::move(arrivals), cost, check);
  EXPECT_TRUE(report.ok()) << report.error().message;
  return std::move(report).value();
}

TEST(Simulation, ARequestAloneTakesTheTimeOfItsSteps) {
  const SimulationReport report =
      run({.pool = {.blocks = 8}}, {{.at = 1s, .prompt = prompt(20), .answer_tokens = 3}});
  const Answer& answer = report.answers.at(0);
  EXPECT_EQ(answer.first_scheduled, 1s);
  EXPECT_EQ(answer.first_token, 1s + 10ms + 20ms);
  EXPECT_EQ(answer.end, answer.first_token + 2 * (10ms + 2ms));
  EXPECT_EQ(report.end, answer.end);
  EXPECT_EQ(report.steps, 3u);
}

TEST(Simulation, RequestsThatArriveWithinAStepWaitForTheNextOne) {
  const SimulationReport report =
      run({.pool = {.blocks = 8}},
          {{.at = 0s, .prompt = prompt(20)}, {.at = 1ms, .prompt = prompt(10, 100)}});
  EXPECT_EQ(report.answers[0].end, 30ms);
  EXPECT_EQ(report.answers[1].first_scheduled, 30ms);
  EXPECT_EQ(report.answers[1].end, 50ms);
}

TEST(Simulation, AnAdapterMustActWithinItsPrompt) {
  for (const int from : {-1, 20}) {
    const auto report =
        simulate({.pool = {.blocks = 8}}, {{.prompt = prompt(20), .acts_from = from}}, kCost);
    EXPECT_THAT(report.error().message, HasSubstr("arrival 0 acts outside its prompt"));
  }
}

// Two adapters waiting for their first step fill the pool.
TEST(Simulation, AdaptersFillingPoolDoNotBlockEachOther) {
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 48; ++i)
    arrivals.push_back({.prompt = prompt(20 + i), .answer_tokens = 8, .adapter = i % 12});
  for (const char* policy : {"unmerged", "merged", "mixture", "valora", "dlora", "vllm"})
    for (const int32_t blocks : {59, 60, 61, 119, 120, 121})
      for (const int32_t swap : {0, 200}) {
        SCOPED_TRACE(::testing::Message() << policy << " blocks " << blocks << " swap " << swap);
        const SimulationReport report =
            run({.scheduler = {.costs = kCost},
                 .policy = policy,
                 .pool = {.blocks = blocks, .swap_blocks = swap, .block_bytes = 40960},
                 .adapter_blocks = std::vector<int32_t>(12, 30)},
                arrivals);
        for (const Answer& answer : report.answers) EXPECT_FALSE(answer.refused);
        EXPECT_LT(report.end, 20s);
      }
}

TEST(Simulation, UnorderedArrivalsKeepResultOrder) {
  const SimulationReport report =
      run({.pool = {.blocks = 8}},
          {{.at = 2s, .prompt = prompt(5)}, {.at = 1s, .prompt = prompt(5, 100)}});
  EXPECT_EQ(report.answers[0].arrival, 2s);
  EXPECT_EQ(report.answers[0].id, 1u);
  EXPECT_LT(report.answers[1].end, report.answers[0].first_scheduled);
}

TEST(Simulation, AFollowUpFindsThePrefixOfItsConversation) {
  std::vector<int32_t> next = prompt(40);
  for (int i = 0; i < 10; ++i) next.push_back(answer_token(1, i));
  next.push_back(7);
  const SimulationReport report =
      run({.pool = {.blocks = 16}}, {{.at = 0s, .prompt = prompt(40), .answer_tokens = 10},
                                     {.at = 9s, .prompt = next, .answer_tokens = 1}});
  EXPECT_EQ(report.answers[0].cached_tokens, 0);
  EXPECT_EQ(report.answers[1].cached_tokens, 48);  // three full blocks of 49 computed tokens
}

TEST(Simulation, AdaptersShareNoPrefixAndAddSegmentCost) {
  const std::vector<Arrival> arrivals{{.prompt = prompt(20), .adapter = 1},
                                      {.prompt = prompt(20), .adapter = 2}};
  const SimulationReport report = run({.pool = {.blocks = 8}}, arrivals);
  EXPECT_EQ(report.answers[1].cached_tokens, 0);
  EXPECT_EQ(report.end, 10ms + 40ms + 2 * 5ms);
}

TEST(Simulation, EveryPolicyRunsInSimulatedTime) {
  scheduler::StepCosts cost = kCost;
  cost.switching = 0.1;
  const std::vector<Arrival> arrivals{{.prompt = prompt(20), .adapter = 1},
                                      {.prompt = prompt(20), .adapter = 2}};
  // One adapter per step, merged before it.
  EXPECT_EQ(run({.policy = "merged", .pool = {.blocks = 8}}, arrivals, cost).end,
            2 * (10ms + 20ms + 100ms));
  // One adapter is merged. Two segments: the other adapter, and subtracting the merged one.
  EXPECT_EQ(run({.policy = "mixture", .pool = {.blocks = 8}}, arrivals, cost).end,
            10ms + 40ms + 100ms + 2 * 5ms);
}

TEST(Simulation, RejectsRequestsThatSchedulerRejects) {
  const SimulationReport report = run(
      {.pool = {.blocks = 2}}, {{.prompt = prompt(4)}, {.prompt = prompt(30), .answer_tokens = 3}});
  EXPECT_FALSE(report.answers[0].refused);
  EXPECT_EQ(report.answers[1].refused->code, ErrorCode::kInvalidArgument);
}

TEST(Simulation, RequestMayFollowAnotherAnswer) {
  const SimulationReport report =
      run({.pool = {.blocks = 20}}, {{.at = 100ms, .prompt = prompt(4), .answer_tokens = 3},
                                     {.at = 50ms, .prompt = prompt(4), .after = 0},
                                     {.at = 0ms, .prompt = prompt(4), .after = 1},
                                     {.at = 10ms, .prompt = prompt(4)}});
  EXPECT_EQ(report.answers[1].arrival, report.answers[0].end + 50ms);
  EXPECT_EQ(report.answers[2].arrival, report.answers[1].end);
  EXPECT_LT(report.answers[3].end, report.answers[0].arrival);
  for (const Answer& answer : report.answers) EXPECT_GT(answer.end, answer.arrival);
}

TEST(Simulation, FollowUpOfFailedRequestFails) {
  const SimulationReport report =
      run({.pool = {.blocks = 2}}, {{.prompt = prompt(30), .answer_tokens = 3},
                                    {.prompt = prompt(4), .after = 0},
                                    {.prompt = prompt(4), .after = 1},
                                    {.prompt = prompt(4)}});
  EXPECT_EQ(report.answers[0].refused->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(report.answers[1].refused->code, ErrorCode::kCancelled);
  EXPECT_EQ(report.answers[2].refused->code, ErrorCode::kCancelled);
  EXPECT_FALSE(report.answers[3].refused);
}

TEST(Simulation, RefusesInvalidSettings) {
  EXPECT_THAT(
      simulate({.pool = {.blocks = 1}}, {{.prompt = {1}, .after = 0}}, kCost).error().message,
      HasSubstr("arrival 0 depends on an arrival that is not before it"));
  EXPECT_THAT(simulate({.pool = {.blocks = 0}}, {}, kCost).error().message,
              HasSubstr("pool block"));
  EXPECT_THAT(simulate({.policy = "best", .pool = {.blocks = 1}}, {}, kCost).error().message,
              HasSubstr("best"));
  EXPECT_THAT(simulate({.pool = {.blocks = 1}}, {{}}, kCost).error().message,
              HasSubstr("arrival 0"));
  EXPECT_EQ(run({.pool = {.blocks = 1}}, {}).steps, 0u);
}

// A small cache under heavy load, with preemption, eviction and sharing. Every request ends, and
// two runs give the same report.
TEST(Simulation, HeavyLoadFinishesAndIsReproducible) {
  for (const char* policy : {"unmerged", "merged", "mixture"}) {
    SCOPED_TRACE(policy);
    std::mt19937 random(7);
    std::vector<Arrival> arrivals;
    for (int i = 0; i < 400; ++i)
      arrivals.push_back({.at = std::chrono::milliseconds(random() % 4000),
                          .prompt = prompt(1 + static_cast<int>(random() % 90)),
                          .answer_tokens = 1 + static_cast<int>(random() % 60),
                          .adapter = static_cast<int>(random() % 5) - 1,
                          .priority = static_cast<int>(random() % 2)});
    const SimulationConfig config{.scheduler = {.max_num_seqs = 16, .max_num_batched_tokens = 128},
                                  .policy = policy,
                                  .pool = {.blocks = 24}};
    const SimulationReport report = run(config, arrivals), again = run(config, arrivals);
    EXPECT_GT(report.scheduler.preemptions, 10u);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const Answer& answer = report.answers[i];
      ASSERT_FALSE(answer.refused) << answer.refused->message;
      ASSERT_LE(answer.arrival, answer.first_scheduled);
      ASSERT_LT(answer.first_scheduled, answer.first_token);
      ASSERT_LE(answer.first_token, answer.end);
      ASSERT_EQ(answer.end, again.answers[i].end);
      ASSERT_EQ(answer.preemptions, again.answers[i].preemptions);
    }
  }
}

}  // namespace
}  // namespace valora::sim
