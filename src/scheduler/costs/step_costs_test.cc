#include "scheduler/costs/step_costs.h"

#include <gtest/gtest.h>

#include "scheduler/costs/live_costs.h"

namespace valora::scheduler {
namespace {

TEST(StepCosts, SumFeaturesOfStep) {
  const StepCosts costs{.step = 1,
                        .token = 0.25,
                        .prefill_token = 0.1,
                        .decode_token = 0.01,
                        .prefill_context = 0.001,
                        .decode_context = 0.002,
                        .segment = 0.5,
                        .rank = 0.03,
                        .token_rank = 0.004,
                        .switching = 2,
                        .merge = 5,
                        .merged_rank = 0.2,
                        .restore = 7};
  StepShape shape{.prefill_tokens = 3,
                  .decode_tokens = 4,
                  .prefill_context = 5,
                  .decode_context = 6,
                  .segments = 2,
                  .ranks = 24,
                  .token_ranks = 100};
  const double running = 1 + 7 * 0.25 + 0.3 + 0.04 + 0.005 + 0.012 + 1 + 0.72 + 0.4;
  EXPECT_DOUBLE_EQ(costs.seconds(shape), running);
  shape.switches = shape.merges = shape.restores = true;
  shape.merged_rank = 16;
  EXPECT_DOUBLE_EQ(costs.seconds(shape), running + 2 + 5 + 3.2 + 7);
  EXPECT_DOUBLE_EQ(costs.running_seconds(shape), running);
}

TEST(StepCosts, FieldsHaveUniqueNamesAndFeatures) {
  StepCosts costs;
  for (const StepCostField& field : step_cost_fields()) {
    EXPECT_FALSE(field.name.empty());
    costs.*field.value = 1;
  }
  for (const StepCostField& field : step_cost_fields()) EXPECT_EQ(costs.*field.value, 1);
  EXPECT_EQ(costs.restore, 1);
}

TEST(StepCosts, TheFirstTokensOfAStepAreFree) {
  const StepCosts costs{.step = 1, .prefill_token = 0.1, .decode_token = 0.01, .free_tokens = 10};
  EXPECT_DOUBLE_EQ(costs.seconds({.decode_tokens = 10}), 1);
  EXPECT_DOUBLE_EQ(costs.seconds({.decode_tokens = 15}), 1.05);
  EXPECT_DOUBLE_EQ(costs.seconds({.prefill_tokens = 10, .decode_tokens = 10}), 1 + 0.5 + 0.05);
}

constexpr StepCosts kFixedCosts{.step = 0.01, .decode_token = 0.001, .merge = 0.05};
constexpr StepShape kDecode{.decode_tokens = 10};
constexpr StepShape kMerging{.decode_tokens = 10, .switches = true, .merges = true};

TEST(LiveCosts, FollowTheMachineWithinBounds) {
  LiveCosts costs(kFixedCosts);
  EXPECT_DOUBLE_EQ(costs.seconds(kDecode), 0.02);
  for (int i = 0; i < 200; ++i) costs.observe(kDecode, 0.03);
  EXPECT_NEAR(costs.seconds(kDecode), 0.03, 1e-4);
  for (int i = 0; i < 1000; ++i) costs.observe(kDecode, 10);
  EXPECT_NEAR(costs.seconds(kDecode), 0.02 * LiveCosts::kMostCorrection, 1e-3);
}

TEST(LiveCosts, SeparateTokenCostFromStepCost) {
  LiveCosts costs({.step = 0.01, .prefill_token = 0.002, .decode_token = 0.001});
  EXPECT_NEAR(costs.units().step, 0.01, 1e-9);
  EXPECT_NEAR(costs.units().prefill_token, 0.002, 1e-9);
  EXPECT_NEAR(costs.units().decode_token, 0.001, 1e-9);
  for (int i = 0; i < 200; ++i) costs.observe(kDecode, 0.04);
  EXPECT_NEAR(costs.units().step, 0.02, 1e-4);
  EXPECT_NEAR(costs.units().prefill_token, 0.004, 1e-4);
}

TEST(LiveCosts, OneSlowStepHasLittleEffect) {
  LiveCosts costs(kFixedCosts);
  for (int i = 0; i < 50; ++i) costs.observe(kDecode, 0.02);
  costs.observe(kDecode, 2);
  EXPECT_LT(costs.seconds(kDecode), 0.022);
}

TEST(LiveCosts, MergesAreCorrectedSeparately) {
  LiveCosts costs(kFixedCosts);
  for (int i = 0; i < 200; ++i) costs.observe(kMerging, 0.02 + 0.1);
  EXPECT_NEAR(costs.weights_seconds(kMerging), 0.1, 1e-3);
  EXPECT_DOUBLE_EQ(costs.seconds(kDecode), 0.02);
}

TEST(LiveCosts, ReportTheirError) {
  LiveCosts costs(kFixedCosts);
  EXPECT_EQ(costs.accuracy().steps, 0u);
  for (int i = 0; i < 90; ++i) costs.observe(kDecode, 0.02);
  for (int i = 0; i < 10; ++i) costs.observe(kDecode, 0.04);
  const auto accuracy = costs.accuracy();
  EXPECT_EQ(accuracy.steps, 100u);
  EXPECT_NEAR(accuracy.median, 0, 1e-6);
  EXPECT_GT(accuracy.p95, 0);
  EXPECT_LT(accuracy.p95, 0.6);
}

TEST(LiveCosts, UnknownCostsStayUnknown) {
  LiveCosts costs({});
  costs.observe(kDecode, 0.02);
  EXPECT_FALSE(costs.known());
  EXPECT_EQ(costs.accuracy().steps, 0u);
}

}  // namespace
}  // namespace valora::scheduler
