// Which kinds of steps are captured before a step needs them, without a GPU.
#include "engine/graphs/likely_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace valora {
namespace {

using Graphs = StepKinds<int>;

constexpr StepLimits kLimits{.sequences = 64, .tokens = 2048, .sequence_tokens = 4096};

bool run(Graphs& graphs, const StepKind& kind) {
  if (graphs.find(kind)) return true;
  if (graphs.due(kind)) graphs.insert(kind, [] { return 0; });
  return false;
}

// Captures all that there is to capture. Returns the kinds in order.
std::vector<StepKind> capture_all(Graphs& graphs, const LikelyKinds& likely,
                                  const TouchedModules& touched, const StepKind& merged = {},
                                  bool first = false) {
  std::vector<StepKind> captured;
  while (const auto kind = likely.next(graphs, touched, {}, merged, first)) {
    EXPECT_FALSE(graphs.has(*kind));
    graphs.insert_ahead(*kind, [] { return 0; });
    captured.push_back(*kind);
    if (captured.size() > 1000) break;
  }
  return captured;
}

bool has_step(const std::vector<StepKind>& kinds, const ops::StepShape& step) {
  const auto bounds = ops::bounds_of(step);
  return bounds &&
         std::ranges::any_of(kinds, [&](const StepKind& k) { return k.bounds == *bounds; });
}

TEST(LikelyBounds, HoldFirstStepsOfAnyLength) {
  for (const int64_t rank : {0, 8, 64}) {
    std::vector<StepKind> kinds;
    for (const ops::StepBounds& bounds : likely_bounds(kLimits, rank, false))
      kinds.push_back({.bounds = bounds});
    EXPECT_LE(kinds.size(), 16u);
    for (int64_t tokens = 1; tokens <= 512; ++tokens) {
      ops::StepShape prompt{.tokens = tokens, .prompts = 1};
      ops::StepShape decodes{
          .tokens = tokens, .decodes = tokens, .most_queries = 1, .longest = 100};
      if (rank > 0)
        for (ops::StepShape* step : {&prompt, &decodes}) {
          step->lora.rows = tokens, step->max_rank = rank;
          step->lora.count = step->lora.ranges = step == &prompt ? 1 : tokens;
          step->lora_longest = step == &prompt ? tokens : 1;
        }
      EXPECT_TRUE(has_step(kinds, prompt)) << tokens << " tokens, rank " << rank;
      EXPECT_EQ(has_step(kinds, decodes), tokens <= 8) << tokens << " decodes, rank " << rank;
    }
    EXPECT_EQ(kinds[0].bounds.tokens, 1) << "the likeliest first";
  }
}

TEST(LikelyBounds, StayWithinTheLimitsOfSteps) {
  const StepLimits small{.sequences = 2, .tokens = 48, .sequence_tokens = 512};
  for (const bool more : {false, true})
    for (const ops::StepBounds& bounds : likely_bounds(small, 16, more)) {
      EXPECT_LE(bounds.tokens, 64);
      EXPECT_LE(bounds.longest, 512);
      EXPECT_TRUE(bounds.embedded || bounds.tokens <= 2);
    }
  for (const ops::StepBounds& bounds : likely_bounds({.sequences = 1, .tokens = 512}, 0, true))
    EXPECT_TRUE(bounds.decodes == 0 || bounds.prompts == 0) << "one sequence has nothing beside it";
}

TEST(LikelyKinds, KindsOfStepsComeFirst) {
  Graphs graphs;
  TouchedModules touched;
  const LikelyKinds likely(kLimits);
  const StepKind rare{.bounds = {.tokens = 7, .decodes = 3, .prompts = 5, .longest = 77}};
  EXPECT_FALSE(run(graphs, rare));
  const auto captured = capture_all(graphs, likely, touched);
  ASSERT_FALSE(captured.empty());
  EXPECT_EQ(captured[0], rare);
  EXPECT_TRUE(run(graphs, rare)) << "the second step of its kind";
  EXPECT_EQ(graphs.waiting(), 0u);
}

TEST(LikelyKinds, AdaptersAddKindsWithTheModulesOfAll) {
  Graphs graphs;
  TouchedModules touched;
  LikelyKinds likely(kLimits);
  const size_t base = capture_all(graphs, likely, touched, {}, true).size();
  EXPECT_GT(base, 4u);
  touched.of_step({0b01});
  touched.of_step({0b10});
  likely.expect(8);
  likely.expect(16);  // the same bound
  const auto added = capture_all(graphs, likely, touched, {}, true);
  EXPECT_EQ(added.size(), base);
  for (const StepKind& kind : added) {
    EXPECT_EQ(kind.touched, (std::vector<uint64_t>{0b11}));
    EXPECT_EQ(kind.bounds.max_rank, 16);
  }
}

TEST(LikelyKinds, KindsThatNoStepWillHaveAreLeftOut) {
  Graphs graphs;
  TouchedModules touched;
  const LikelyKinds likely({.sequences = 0});  // nothing is likely but what steps had
  int weights = 0, others = 0;
  const StepKind old{.bounds = {.tokens = 8}, .touched = touched.of_step({0b01})};
  const StepKind merged{
      .bounds = {.tokens = 8}, .merged = &weights, .merged_modules = {true, false}};
  StepKind now{.merged = &weights, .merged_modules = {false, true}};
  for (const StepKind& kind : {old, merged}) run(graphs, kind);
  touched.of_step({0b10});
  EXPECT_FALSE(likely.next(graphs, touched, {}, now, false)) << "other modules are merged now";
  EXPECT_FALSE(likely.next(graphs, touched, {}, {.merged = &others}, false));
  now.merged_modules = merged.merged_modules;
  EXPECT_EQ(likely.next(graphs, touched, {}, now, false), merged);
}

TEST(LikelyKinds, EvictNothingAndAreEvictedFirst) {
  Graphs graphs({.graphs = 12, .waiting = 8, .seen_before = 0, .ahead = 8});
  TouchedModules touched;
  const LikelyKinds likely(kLimits);
  const auto step = [](int32_t i) { return StepKind{.bounds = {.tokens = 1000 + i}}; };
  for (int32_t i = 0; i < 4; ++i) run(graphs, step(i));
  const auto captured = capture_all(graphs, likely, touched);
  EXPECT_EQ(captured.size(), 4u) << "up to `ahead` graphs in all";
  EXPECT_TRUE(graphs.find(captured[0])) << "used by a step";
  for (int32_t i = 4; i < 11; ++i) run(graphs, step(i));
  EXPECT_EQ(graphs.graphs(), 12u);
  for (int32_t i = 0; i < 11; ++i) EXPECT_TRUE(graphs.has(step(i))) << i;
  EXPECT_TRUE(graphs.has(captured[0]));
  for (size_t i = 1; i < 4; ++i) EXPECT_FALSE(graphs.has(captured[i]));
  EXPECT_FALSE(likely.next(graphs, touched, {}, {}, false)) << "no room";
}

}  // namespace
}  // namespace valora
