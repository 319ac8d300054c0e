// The bounds of captured steps, without a GPU.
#include "ops/step/step_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

namespace valora::ops {
namespace {

StepShape decodes(int64_t sequences, int64_t longest = 100) {
  return {.tokens = sequences, .decodes = sequences, .most_queries = 1, .longest = longest};
}

StepShape mixed(int64_t prompt, int64_t decodes, int64_t longest = 100) {
  return {.tokens = prompt + decodes,
          .decodes = decodes,
          .prompts = 1,
          .most_queries = decodes > 0 ? 1 : 0,
          .longest = decodes > 0 ? longest : 0};
}

// One adapter of rank `rank` per sequence.
StepShape adapted(StepShape step, int64_t rank) {
  step.lora.rows = step.tokens;
  step.lora.count = step.lora.ranges = step.decodes + step.prompts;
  step.lora_longest = step.tokens - step.decodes + 1;
  step.max_rank = rank;
  return step;
}

bool holds(const StepBounds& bounds, const StepShape& step) {
  return bounds.tokens >= step.tokens && bounds.decodes >= step.decodes &&
         bounds.prompts >= step.prompts && bounds.longest >= step.longest &&
         (bounds.embedded || (!step.embedded && step.most_queries == 1 && step.prompts == 0)) &&
         bounds.lora_layers * bounds.tokens >= step.lora.rows &&
         bounds.lora_layers * bounds.spans() >= std::max(step.lora.count, step.lora.ranges) &&
         bounds.output_layers * bounds.tokens >= step.outputs.rows &&
         bounds.output_layers * bounds.spans() >=
             std::max(step.outputs.count, step.outputs.ranges) &&
         bounds.max_rank >= step.max_rank && bounds.joint == step.joint;
}

TEST(StepBounds, ContainTheirStepsAndAreFew) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::set<std::tuple<int, int, int, int, bool, int, int, int, int>> different, with_outputs;
  int present = 0;
  for (int i = 0; i < 20'000; ++i) {
    StepShape step = below(2) ? mixed(3 + below(500), below(40), 1 + below(2000))
                              : decodes(1 + below(256), 1 + below(2000));
    step.embedded = step.joint = below(4) == 0;
    if (step.prompts > 0) step.prompts += below(3);
    if (below(2)) step = adapted(step, 1 + below(64));
    if (below(8) == 0) step.outputs = adapted(step, 1).lora;
    const auto bounds = bounds_of(step);
    if (!bounds) {
      EXPECT_GT(step.tokens, 500);
      continue;
    }
    ++present;
    EXPECT_TRUE(holds(*bounds, step)) << step.tokens << " tokens, " << step.decodes << " decodes";
    EXPECT_LE(bounds->tokens, std::max<int64_t>(16, std::min(step.tokens * 2, step.tokens + 63)));
    (bounds->output_layers > 0 ? with_outputs : different)
        .insert({bounds->tokens, bounds->decodes, bounds->prompts, bounds->longest,
                 bounds->embedded, bounds->lora_layers, bounds->lora_tile, bounds->max_rank,
                 bounds->output_layers});
  }
  EXPECT_GT(present, 19'000);
  EXPECT_LT(different.size(), 1000u);
  EXPECT_LT(with_outputs.size(), 600u) << "in an eighth of the steps";
}

// An engine with eight clients must not produce more kinds of steps than there are graphs.
TEST(StepBounds, OneWorkloadNeedsFewBounds) {
  std::mt19937 random(5);
  std::set<std::tuple<int, int, int, int, int>> different;
  for (int i = 0; i < 5'000; ++i) {
    const auto others = static_cast<int64_t>(random() % 8);
    const int64_t longest = 64 + static_cast<int64_t>(random() % 300);
    const StepShape step = random() % 4 == 0 ? mixed(64 + random() % 192, others, longest)
                                             : decodes(others + 1, longest);
    const auto bounds = bounds_of(adapted(step, 16));
    ASSERT_TRUE(bounds);
    different.insert(
        {bounds->tokens, bounds->decodes, bounds->prompts, bounds->longest, bounds->lora_tile});
  }
  EXPECT_LE(different.size(), 20u);
}

TEST(StepBounds, DecodeOnlyStepsTakeTokenIds) {
  const auto bounds = bounds_of(adapted(decodes(20, 600), 8));
  ASSERT_TRUE(bounds);
  EXPECT_EQ(*bounds, (StepBounds{.tokens = 24,
                                 .decodes = 24,
                                 .longest = 1024,
                                 .lora_layers = 1,
                                 .lora_tile = 16,
                                 .max_rank = 16}));
  StepShape picture = decodes(20);
  picture.embedded = true;
  EXPECT_TRUE(bounds_of(picture)->embedded);
  StepShape guessed = decodes(20);
  guessed.tokens = 40, guessed.most_queries = 2;
  EXPECT_TRUE(bounds_of(guessed)->embedded);
}

TEST(StepBounds, PromptsUseWideAdapterTiles) {
  EXPECT_EQ(bounds_of(adapted(mixed(40, 5), 8))->lora_tile, 16);
  EXPECT_EQ(bounds_of(adapted(mixed(80, 5), 8))->lora_tile, 32);
  StepShape one_adapter = adapted(decodes(100), 8);
  EXPECT_EQ(bounds_of(one_adapter)->lora_tile, 16);
  one_adapter.lora_longest = 100;  // one segment with all tokens
  EXPECT_EQ(bounds_of(one_adapter)->lora_tile, 32) << "as it would be planned";
}

TEST(StepBounds, NoBoundsForOversizedSteps) {
  EXPECT_FALSE(bounds_of({}));
  EXPECT_TRUE(bounds_of(mixed(512, 0)));
  EXPECT_FALSE(bounds_of(mixed(513, 0)));
  EXPECT_TRUE(bounds_of(decodes(256)));
  EXPECT_FALSE(bounds_of(decodes(257)));
  StepShape step = mixed(200, 0);
  step.prompts = 65;
  EXPECT_FALSE(bounds_of(step));
  step = mixed(100, 3);
  step.blocks = kMostStepBlocks + 1;
  EXPECT_FALSE(bounds_of(step));
  step = adapted(mixed(100, 3), 8);
  step.lora.count = 81;  // for eight spans and two prompts
  EXPECT_FALSE(bounds_of(step));
  step.lora.count = 80;
  EXPECT_EQ(bounds_of(step)->lora_layers, 8);
  step.outputs = {.rows = 103, .count = 81, .ranges = 81};
  EXPECT_FALSE(bounds_of(step));
  step.outputs.count = step.outputs.ranges = 4;
  EXPECT_EQ(bounds_of(step)->output_layers, 1);
}

}  // namespace
}  // namespace valora::ops
