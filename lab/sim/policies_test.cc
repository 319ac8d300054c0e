// Policies in simulated time: how much merged mode may delay, and which policy is fastest.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "lab/sim/simulation.h"
#include "lab/sim/testing/gpu_costs.h"
#include "lab/sim/vision_workload.h"

namespace valora::sim {
namespace {

using namespace std::chrono_literals;

// A share of `skewness` of the requests uses adapter 0; the others are spread over five adapters.
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

// Records the longest time for which modes left out a request in a simulation.
struct LongestPass {
  Duration passed{};
  std::map<scheduler::Mode, int> modes;
  int steps = 0;

  void operator()(const scheduler::Scheduler& scheduler) {
    if (steps++ % 50 == 0) {  // check() scans all blocks of a large pool
      ASSERT_EQ(scheduler.check(), "");
    }
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
    EXPECT_LE(longest.passed, config.policy_options.tolerance) << "seed " << seed;
    EXPECT_GT(longest.modes[scheduler::Mode::kMerged], 0) << "seed " << seed;
  }
}

// A decoder with 0.5 billion parameters on two cores, as measured by `valora tune --cost`: steps
// and merges are slow, and prompts soon take longer than θ.
constexpr scheduler::StepCosts kCpuCosts{.step = 0.0295,
                                         .token = 3.8e-4,
                                         .prefill_token = 1.35e-3,
                                         .decode_token = 2.0e-3,
                                         .free_tokens = 8,
                                         .prefill_context = 4e-7,
                                         .decode_context = 3.9e-6,
                                         .segment = 2.8e-4,
                                         .rank = 1.2e-5,
                                         .token_rank = 4.2e-6,
                                         .switching = 1.6e-3,
                                         .merge = 0.0195,
                                         .merged_rank = 1.66e-3};

double mean_latency(const SimulationConfig& config, const std::vector<Arrival>& arrivals) {
  const auto report = simulate(config, arrivals, config.scheduler.costs);
  EXPECT_TRUE(report.ok());
  double sum = 0;
  for (const Answer& answer : report->answers) sum += seconds(answer.end - answer.arrival);
  return sum / static_cast<double>(report->answers.size());
}

// Runs `arrivals` for each seed.
void expect_valora_close_to_the_fastest(
    const scheduler::StepCosts& costs,
    const std::function<std::vector<Arrival>(uint32_t seed)>& arrivals) {
  std::map<std::string, double> latency;
  for (const char* policy : {"valora", "unmerged", "merged", "mixture", "dlora"}) {
    SimulationConfig config = roomy_config(policy);
    config.scheduler.costs = costs;
    config.adapter_ranks.assign(6, 64);
    for (uint32_t seed = 1; seed <= 3; ++seed)
      latency[policy] += mean_latency(config, arrivals(seed)) / 3;
  }
  for (const auto& [policy, rival] : latency)
    EXPECT_LE(latency["valora"], 1.03 * rival) << "than " << policy;
}

TEST(Policies, ValoraIsNearFastestAtEverySkewness) {
  for (const double skewness : {0.2, 0.4, 0.6, 0.8, 0.95}) {
    SCOPED_TRACE(skewness);
    expect_valora_close_to_the_fastest(testing::kGpuCosts,
                                       [&](uint32_t seed) { return requests(skewness, seed); });
    expect_valora_close_to_the_fastest(
        kCpuCosts, [&](uint32_t seed) { return requests(skewness, seed, 0.8); });
  }
}

// Long prompts that are answered with a label.
TEST(Policies, ValoraIsNearFastestForCameras) {
  for (const int cameras : {1, 2, 4}) {
    SCOPED_TRACE(cameras);
    const auto chunks = [&](double period) {
      return [&, period](uint32_t seed) {
        return make_streams({.streams = cameras, .period = period, .adapters = 4, .seed = seed})
            .value();
      };
    };
    expect_valora_close_to_the_fastest(testing::kGpuCosts, chunks(1));
    expect_valora_close_to_the_fastest(kCpuCosts, chunks(20));
  }
}

// S-LoRA's figure 10: under overload, refusing requests that would be late lets more of the others
// meet their targets.
TEST(Policies, EarlyAbortKeepsTargetsOfRemainingRequests) {
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
