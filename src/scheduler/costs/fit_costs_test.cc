#include "scheduler/costs/fit_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/testing/temp_dir.h"
#include "scheduler/costs/cost_file.h"

namespace valora::scheduler {
namespace {

using ::testing::HasSubstr;

constexpr StepCosts kTrue{.step = 0.02,
                          .token = 1e-4,
                          .prefill_token = 2e-3,
                          .decode_token = 1.5e-3,
                          .free_tokens = 12,
                          .prefill_context = 1e-7,
                          .decode_context = 4e-7,
                          .segment = 1e-4,
                          .rank = 3e-5,
                          .token_rank = 2e-6,
                          .switching = 1e-5,
                          .merge = 0.04,
                          .merged_rank = 5e-4,
                          .restore = 0.1};

std::vector<StepShape> shapes(int count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::vector<StepShape> all;
  for (int i = 0; i < count; ++i) {
    StepShape s;
    if (pick(2) == 0) {
      s.prefill_tokens = 1 + pick(1024);
      s.prefill_context = int64_t{s.prefill_tokens} * (1 + pick(1000));
    }
    s.decode_tokens = pick(32) + (s.prefill_tokens == 0 ? 1 : 0);
    s.decode_context = int64_t{s.decode_tokens} * (1 + pick(2000));
    s.segments = pick(8);
    const int rank = 8 << pick(4);
    s.ranks = s.segments * rank;
    if (s.segments > 0) s.token_ranks = int64_t{s.tokens()} * rank;
    s.switches = pick(4) == 0;
    s.merges = s.switches && pick(2) == 0;
    if (s.merges) s.merged_rank = rank;
    s.restores = s.switches && !s.merges && pick(2) == 0;
    all.push_back(s);
  }
  return all;
}

TEST(FitCosts, FindsTheCostsBehindNoisyStepsWithOutliers) {
  std::mt19937 random(5);
  std::vector<MeasuredStep> steps;
  for (const StepShape& shape : shapes(2000, 1)) {
    const double noise = 1 + 0.05 * (static_cast<double>(random() % 2001) / 1000 - 1);
    const double outlier = random() % 50 == 0 ? 4 : 1;
    steps.push_back({shape, kTrue.seconds(shape) * noise * outlier});
  }
  const auto fitted = fit_costs(steps);
  ASSERT_TRUE(fitted.ok());
  EXPECT_LT(fitted->error_median, 0.04);
  EXPECT_LT(fitted->error_p95, 0.1);
  EXPECT_EQ(fitted->costs.free_tokens, 12);
  for (const StepShape& shape : shapes(200, 2))
    EXPECT_NEAR(fitted->costs.seconds(shape) / kTrue.seconds(shape), 1, 0.05);
  EXPECT_NEAR(fitted->costs.merge + 16 * fitted->costs.merged_rank,
              kTrue.merge + 16 * kTrue.merged_rank, 0.005);
}

TEST(FitCosts, ErrorIsMeasuredOnHeldOutSteps) {
  // Times that no linear function can produce.
  std::vector<MeasuredStep> steps;
  for (const StepShape& shape : shapes(300, 3))
    steps.push_back({shape, std::pow(kTrue.seconds(shape), 2)});
  const auto fitted = fit_costs(steps);
  ASSERT_TRUE(fitted.ok());
  EXPECT_GT(fitted->error_p95, 0.2);
}

TEST(FitCosts, SlowPhaseIsNotAttributedToItsAdapters) {
  // Memory is slow in half of the steps, most of which have adapters.
  std::mt19937 random(7);
  std::vector<MeasuredStep> steps;
  for (StepShape shape : shapes(1000, 6)) {
    shape.merges = shape.restores = false;
    const bool slow = random() % 4 != 0 ? shape.segments > 3 : shape.segments <= 3;
    const double memory_time = slow ? 1.2 : 0.8;
    const double reading = kTrue.step + kTrue.segment * shape.segments + kTrue.rank * shape.ranks;
    const double seconds = kTrue.seconds(shape) + (memory_time - 1) * reading;
    steps.push_back({shape, seconds, memory_time});
  }
  const auto fitted = fit_costs(steps);
  ASSERT_TRUE(fitted.ok());
  const auto adapter = [](const StepCosts& costs) { return costs.segment + 64 * costs.rank; };
  EXPECT_NEAR(adapter(fitted->costs) / adapter(kTrue), 1, 0.02);
  EXPECT_LT(fitted->error_p95, 0.01);
  for (MeasuredStep& step : steps) step.memory_time = 1;
  EXPECT_GT(with_errors(fitted->costs, steps).error_p95, 0.1);
  const auto misled = fit_costs(steps);
  EXPECT_GT(adapter(misled->costs) / adapter(kTrue), 1.2);
}

TEST(FitCosts, CorrectedCostsFollowAMachineThatSlowsDown) {
  std::vector<MeasuredStep> steps;
  for (const StepShape& shape : shapes(400, 4)) {
    const double speed = steps.size() < 200 ? 1 : 1.5;
    steps.push_back({shape, kTrue.seconds(shape) * speed});
  }
  const FittedCosts uncorrected = with_errors(kTrue, steps);
  EXPECT_NEAR(uncorrected.error_p95, 1 - 1 / 1.5, 1e-6);
  const FittedCosts corrected = with_corrected_errors(kTrue, steps);
  EXPECT_EQ(corrected.steps, 80);  // the held-out steps
  EXPECT_LT(corrected.error_median, 0.01);
  EXPECT_LT(corrected.error_p95, 0.2);
}

TEST(FitCosts, UnobservedFeaturesCostNothing) {
  std::vector<MeasuredStep> steps;
  for (int i = 1; i <= 50; ++i) steps.push_back({{.decode_tokens = i}, 0.02 + 0.001 * i});
  const auto fitted = fit_costs(steps);
  ASSERT_TRUE(fitted.ok());
  EXPECT_NEAR(fitted->costs.seconds({.decode_tokens = 7}), 0.027, 1e-5);
  EXPECT_EQ(fitted->costs.merge, 0);
  EXPECT_EQ(fitted->costs.rank, 0);
}

TEST(FitCosts, RefusesTooFewStepsAndZeroTimes) {
  std::vector<MeasuredStep> steps(19, {{.decode_tokens = 1}, 0.1});
  EXPECT_THAT(fit_costs(steps).error().message, HasSubstr("20"));
  steps.resize(30);
  EXPECT_THAT(fit_costs(steps).error().message, HasSubstr("no time"));
}

TEST(CostFile, ReturnsWhatWasWritten) {
  const testing::TempDir folder;
  const CostFile file{"a CPU", "a model", {kTrue, 0.03, 0.12, 900}};
  const std::string path = folder.path() + "/new/costs.json";
  ASSERT_TRUE(write_cost_file(path, file).ok());
  const auto read = read_cost_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->machine, file.machine);
  EXPECT_EQ(read->model, file.model);
  EXPECT_EQ(read->fitted.steps, 900);
  EXPECT_EQ(read->fitted.error_p95, 0.12);
  EXPECT_EQ(read->fitted.costs.free_tokens, 12);
  for (const StepCostField& field : step_cost_fields())
    EXPECT_EQ(read->fitted.costs.*field.value, kTrue.*field.value) << field.name;
}

TEST(CostFile, ErrorsNameField) {
  const auto message = [](const std::string& text) {
    return parse_cost_file(text, "costs.json").error().message;
  };
  const std::string good = cost_file_text({"m", "n", {kTrue, 0, 0, 1}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return message(text);
  };
  EXPECT_THAT(message("[]"), HasSubstr("costs.json"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 9"), HasSubstr("version 9"));
  EXPECT_THAT(with("\"merged_rank\"", "\"other\""), HasSubstr("merged_rank"));
  EXPECT_THAT(with("\"decode_token\": 0.0015", "\"decode_token\": -1"), HasSubstr("decode_token"));
  EXPECT_THAT(with("\"error\"", "\"eror\""), HasSubstr("error"));
}

}  // namespace
}  // namespace valora::scheduler
