#include "sim/step_cost.h"

#include <gtest/gtest.h>

namespace valora::sim {
namespace {

using scheduler::kBaseModel;
using scheduler::Mode;
using scheduler::Request;
using scheduler::StepPlan;

Request request(int prompt, int known, int computed, scheduler::AdapterId adapter = kBaseModel) {
  Request made;
  made.prompt_tokens = prompt;
  made.tokens.resize(known);
  made.computed_tokens = computed;
  made.adapter = adapter;
  return made;
}

TEST(StepShape, TellsPrefillsFromDecodesAndCountsTheContext) {
  Request chunk = request(100, 100, 20), last = request(10, 10, 9), decode = request(5, 9, 8);
  StepPlan plan;
  plan.items = {{&chunk, 3}, {&last, 1}, {&decode, 1}};
  const StepShape shape = shape_of(plan, kBaseModel);
  EXPECT_EQ(shape.prefill_tokens, 4);
  EXPECT_EQ(shape.decode_tokens, 1);
  EXPECT_EQ(shape.context_tokens, (21 + 22 + 23) + 10 + 9);
  EXPECT_FALSE(shape.switches);
}

TEST(StepShape, CountsTheSegmentsOfEachMode) {
  Request a = request(5, 9, 8, 1), b = request(5, 9, 8, 2), base = request(5, 9, 8);
  StepPlan plan;
  plan.items = {{&a, 1}, {&b, 1}, {&base, 1}};
  EXPECT_EQ(shape_of(plan, kBaseModel).segments, 2);

  plan.mode = Mode::kMixture;
  plan.merged = 1;
  EXPECT_EQ(shape_of(plan, kBaseModel).segments,
            2);  // adapter b, and the subtraction of a for b and the base
  EXPECT_TRUE(shape_of(plan, kBaseModel).switches);
  EXPECT_FALSE(shape_of(plan, 1).switches);

  plan.items = {{&a, 1}};
  EXPECT_EQ(shape_of(plan, 1).segments, 0);
  plan.mode = Mode::kMerged;
  EXPECT_EQ(shape_of(plan, 1).segments, 0);
}

TEST(LinearCost, AddsWhatAStepHolds) {
  const LinearCost cost{.step = 1,
                        .prefill_token = 0.1,
                        .decode_token = 0.01,
                        .context_token = 0.001,
                        .segment = 0.5,
                        .switching = 2};
  StepShape shape{.prefill_tokens = 3, .decode_tokens = 4, .context_tokens = 5, .segments = 2};
  EXPECT_EQ(cost(shape), from_seconds(1 + 0.3 + 0.04 + 0.005 + 1));
  shape.switches = true;
  EXPECT_EQ(cost(shape), from_seconds(1 + 0.3 + 0.04 + 0.005 + 1 + 2));
}

}  // namespace
}  // namespace valora::sim
