// Tenants in simulated time: how much a tenant that floods the queue takes from the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "lab/sim/simulation.h"
#include "lab/sim/testing/gpu_costs.h"

namespace valora::sim {
namespace {

using namespace std::chrono_literals;

struct Load {
  scheduler::TenantId tenant;
  double rate;  // requests per second
  double share = 1;
  int answer = 40;
};

std::vector<Arrival> requests_of(const std::vector<Load>& loads, double until) {
  std::mt19937 random(7);
  std::vector<Arrival> arrivals;
  for (const Load& load : loads) {
    for (double at = 0; at < until; at += 1 / load.rate) {
      Arrival arrival{.at = from_seconds(at),
                      .answer_tokens = load.answer,
                      .adapter = load.tenant,
                      .tenant = load.tenant,
                      .share = load.share};
      arrival.prompt.resize(64);
      for (int32_t& token : arrival.prompt) token = static_cast<int32_t>(random() % 1000);
      arrivals.push_back(std::move(arrival));
    }
  }
  std::ranges::stable_sort(arrivals, {}, &Arrival::at);
  return arrivals;
}

// The tenants compete for eight places in a step.
SimulationConfig crowded_config(const std::string& policy) {
  return {.scheduler = {.max_num_seqs = 8, .costs = testing::kGpuCosts},
          .policy = policy,
          .pool = {.blocks = 4000}};
}

// Seconds of steps per tenant within `until` seconds of overload.
std::map<scheduler::TenantId, double> service(const std::string& policy,
                                              const std::vector<Load>& loads, double until) {
  std::map<scheduler::TenantId, double> served;
  int steps = 0;
  const auto report =
      simulate(crowded_config(policy), requests_of(loads, until), testing::kGpuCosts,
               [&](const scheduler::Scheduler& s, const auto&, Duration now) {
                 ++steps;
                 if (steps % 16 == 0) {
                   ASSERT_EQ(s.check(), "");
                 }
                 if (seconds(now) > until) return;
                 for (const Load& load : loads) served[load.tenant] = s.service(load.tenant);
               });
  EXPECT_TRUE(report.ok());
  return served;
}

class Fairness : public ::testing::TestWithParam<const char*> {};

TEST_P(Fairness, OverloadingTenantsGetTheirShare) {
  auto got = service(GetParam(), {{0, 50}, {1, 10}, {2, 10, 2}}, 20);
  EXPECT_NEAR(got[1] / got[0], 1, 0.1);
  EXPECT_NEAR(got[2] / got[0], 2, 0.2);
}

TEST_P(Fairness, ATenantWithLongAnswersGetsNoMoreService) {
  auto got = service(GetParam(), {{0, 3, 1, 200}, {1, 30, 1, 20}}, 60);
  EXPECT_NEAR(got[1] / got[0], 1, 0.15);
}

// A quiet tenant that requests less than its share is served at once, whatever the load of the
// other.
TEST_P(Fairness, AFloodDoesNotDelayAQuietTenant) {
  std::map<bool, double> slowest;
  for (const bool flooded : {false, true}) {
    const std::vector<Load> quiet{{0, 0.5, 1, 10}};
    const std::vector<Load> both{{0, 0.5, 1, 10}, {1, 100}};
    const std::vector<Arrival> arrivals = requests_of(flooded ? both : quiet, 20);
    const auto report = simulate(crowded_config(GetParam()), arrivals, testing::kGpuCosts);
    ASSERT_TRUE(report.ok());
    for (size_t i = 0; i < arrivals.size(); ++i) {
      if (arrivals[i].tenant != 0) continue;
      const Answer& answer = report->answers[i];
      slowest[flooded] = std::max(slowest[flooded], seconds(answer.first_token - answer.arrival));
    }
  }
  // It waits at most until one of the eight running requests ends: 40 steps.
  EXPECT_LT(slowest[true], slowest[false] + 40 * 0.035);
}

INSTANTIATE_TEST_SUITE_P(Policies, Fairness, ::testing::Values("unmerged", "valora", "mixture"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace valora::sim
