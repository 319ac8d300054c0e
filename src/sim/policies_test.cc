// Policies in simulated time: what merged mode may delay, and which policy is the fastest.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "sim/simulation.h"
#include "sim/testing/gpu_costs.h"

namespace valora::sim {
namespace {

using namespace std::chrono_literals;

// A share of the requests is of adapter 0, the others are spread over five.
std::vector<Arrival> requests(double skewness, uint32_t seed, double rate = 12) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  std::vector<Arrival> arrivals;
  for (double at = 0; at < 30; at += 2 * uniform() / rate) {
    Arrival arrival{.at = from_seconds(at), .answer_tokens = 10 + static_cast<int>(random() % 60)};
    arrival.prompt.resize(20 + random() % 200);
    for (int32_t& token : arrival.prompt) token = static_cast<int32_t>(random() % 1000);
    arrival.adapter = uniform() < skewness ? 0 : 1 + static_cast<int>(random() % 5);
    arrivals.push_back(std::move(arrival));
  }
  return arrivals;
}

SimulationConfig roomy_config(const std::string& policy) {
  return {.scheduler = {.max_num_seqs = 32, .costs = testing::kGpuCosts},
          .policy = policy,
          .pool = {.blocks = 4000}};
}

// Notes the longest time that the mode left out a request of a running simulation.
struct LongestPass {
  Duration passed{};
  std::map<scheduler::Mode, int> modes;

  void operator()(const scheduler::Scheduler& scheduler) {
    ASSERT_EQ(scheduler.check(), "");
    ++modes[scheduler.mode()];
    for (const auto& request : scheduler.running()) passed = std::max(passed, request->passed);
    for (const auto& request : scheduler.waiting()) passed = std::max(passed, request->passed);
  }
};

TEST(Policies, ValoraLeavesNoRequestOutForLongerThanItsTolerance) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SimulationConfig config = roomy_config("valora");
    config.policy_options.tolerance = 100ms * seed;
    LongestPass longest;
    const auto report = simulate(config, requests(0.55 + 0.05 * seed, seed, 25), testing::kGpuCosts,
                                 [&](const auto& s, const auto&, Duration) { longest(s); });
    ASSERT_TRUE(report.ok());
    // One step may begin just before the tolerance ends: the longest takes a merge and 2,048
    // tokens.
    EXPECT_LE(longest.passed, config.policy_options.tolerance + 300ms) << "seed " << seed;
    EXPECT_GT(longest.modes[scheduler::Mode::kMerged], 0) << "seed " << seed;
  }
}

double mean_latency(const std::string& policy, double skewness, uint32_t seed) {
  const auto report = simulate(roomy_config(policy), requests(skewness, seed), testing::kGpuCosts);
  EXPECT_TRUE(report.ok());
  double sum = 0;
  for (const Answer& answer : report->answers) sum += seconds(answer.end - answer.arrival);
  return sum / static_cast<double>(report->answers.size());
}

TEST(Policies, ValoraIsTheFastestOrCloseToItAtEverySkewness) {
  for (const double skewness : {0.2, 0.4, 0.6, 0.8, 0.95}) {
    SCOPED_TRACE(skewness);
    std::map<std::string, double> latency;
    for (const char* policy : {"valora", "unmerged", "merged", "mixture", "dlora"})
      for (uint32_t seed = 1; seed <= 3; ++seed)
        latency[policy] += mean_latency(policy, skewness, seed) / 3;
    for (const auto& [policy, rival] : latency)
      EXPECT_LE(latency["valora"], 1.03 * rival) << "than " << policy;
  }
}

// S-LoRA's figure 10: under more load than the machine can serve, refusing those that would be late
// serves more of the others in time.
TEST(Policies, EarlyAbortKeepsTheTargetsOfThoseThatStay) {
  double in_time[2] = {};
  for (const bool early_abort : {false, true}) {
    std::vector<Arrival> arrivals = requests(0.5, 3, 40);
    for (Arrival& arrival : arrivals) arrival.ttft_target = 2s;
    SimulationConfig config = roomy_config("valora");
    config.scheduler.early_abort = early_abort;
    const auto report = simulate(config, arrivals, testing::kGpuCosts);
    ASSERT_TRUE(report.ok());
    size_t refused = 0, late = 0;
    for (const Answer& answer : report->answers) {
      if (answer.refused) {
        EXPECT_EQ(answer.refused->code, ErrorCode::kUnavailable);
        ++refused;
      } else if (answer.first_token - answer.arrival > 2s) {
        ++late;
      } else {
        ++in_time[early_abort];
      }
    }
    EXPECT_EQ(refused, report->scheduler.early_aborts);
    EXPECT_EQ(refused > 0, early_abort);
    if (early_abort) {
      EXPECT_LT(late, report->answers.size() / 10) << "what stays is mostly in time";
    }
  }
  EXPECT_GT(in_time[1], 1.2 * in_time[0]);
}

TEST(Policies, EarlyAbortRefusesNothingWhileAllCanBeServed) {
  std::vector<Arrival> arrivals = requests(0.5, 3, 5);
  for (Arrival& arrival : arrivals) arrival.ttft_target = 2s;
  SimulationConfig config = roomy_config("unmerged");
  config.scheduler.early_abort = true;
  const auto report = simulate(config, arrivals, testing::kGpuCosts);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->scheduler.early_aborts, 0u);
}

}  // namespace
}  // namespace valora::sim
