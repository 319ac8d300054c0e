#include "scheduler/costs/step_shape.h"

#include <gtest/gtest.h>

namespace valora::scheduler {
namespace {

Request shaped_request(int prompt, int known, int computed,
                       std::vector<DecoderAdapter> adapters = {}) {
  Request made;
  made.prompt_tokens = prompt;
  made.tokens.resize(known);
  made.computed_tokens = computed;
  made.decoder_adapters = std::move(adapters);
  return made;
}

TEST(StepShape, SeparatesPrefillFromDecodeAndCountsContext) {
  StepShaper shaper(Mode::kUnmerged, kBaseModel);
  shaper.add(shaped_request(100, 100, 20), 3);
  shaper.add(shaped_request(10, 10, 9), 1);
  shaper.add(shaped_request(5, 9, 8), 1);
  const StepShape shape = shaper.shape();
  EXPECT_EQ(shape.prefill_tokens, 4);
  EXPECT_EQ(shape.decode_tokens, 1);
  EXPECT_EQ(shape.prefill_context, (21 + 22 + 23) + 10);
  EXPECT_EQ(shape.decode_context, 9);
  EXPECT_EQ(shape.segments, 0);
}

StepShape shape_of(Mode mode, AdapterId merged, const std::vector<Request>& requests) {
  StepShaper shaper(mode, merged);
  for (const Request& one : requests) shaper.add(one, 2);
  return shaper.shape();
}

TEST(StepShape, CountsTheLowRankProductsOfEachMode) {
  const std::vector<Request> requests{shaped_request(5, 9, 7, {{1, 16}}),
                                      shaped_request(5, 9, 7, {{1, 16}}),
                                      shaped_request(5, 9, 7, {{2, 8}}), shaped_request(5, 9, 7)};
  const StepShape unmerged = shape_of(Mode::kUnmerged, kBaseModel, requests);
  EXPECT_EQ(unmerged.segments, 2);
  EXPECT_EQ(unmerged.ranks, 24);
  EXPECT_EQ(unmerged.token_ranks, 2 * (16 + 16 + 8));

  // Adapter 2, plus the subtraction of adapter 1 for requests of adapter 2 and the base model.
  const StepShape mixture = shape_of(Mode::kMixture, 1, requests);
  EXPECT_EQ(mixture.segments, 2);
  EXPECT_EQ(mixture.ranks, 24);
  EXPECT_EQ(mixture.token_ranks, 2 * (8 + 16 + 16));

  const StepShape merged = shape_of(Mode::kMerged, 1, {requests[0], requests[1]});
  EXPECT_EQ(merged.segments, 0);
  EXPECT_EQ(merged.ranks, 0);
  EXPECT_EQ(merged.token_ranks, 0);
}

// Tokens before the invocation run on the base model.
TEST(StepShape, ActivatedAdaptersApplyFromTheirInvocationOn) {
  Request request = shaped_request(10, 10, 2, {{1, 16}});
  request.identity.late = DigestBuilder().add(1).finish();
  request.identity.late_from = 7;
  const auto ranks_of = [&](int tokens) {
    StepShaper shaper(Mode::kUnmerged, kBaseModel);
    shaper.add(request, tokens);
    return std::pair{shaper.shape().segments, shaper.shape().token_ranks};
  };
  EXPECT_EQ(ranks_of(5), std::pair(0, int64_t{0}));
  EXPECT_EQ(ranks_of(8), std::pair(1, int64_t{3 * 16}));
  request.computed_tokens = 8;
  EXPECT_EQ(ranks_of(2), std::pair(1, int64_t{2 * 16}));
}

TEST(StepShape, ScalesAndSumsNeedProductsOnMergedWeights) {
  // Adapter 1 at 0.5: half of it is subtracted. The sum of both: only adapter 2 is added.
  EXPECT_EQ(shape_of(Mode::kMerged, 1, {shaped_request(5, 9, 7, {{1, 16, 0.5F}})}).token_ranks,
            2 * 16);
  EXPECT_EQ(shape_of(Mode::kMerged, 1, {shaped_request(5, 9, 7, {{1, 16}, {2, 8}})}).token_ranks,
            2 * 8);
  EXPECT_EQ(shape_of(Mode::kUnmerged, kBaseModel, {shaped_request(5, 9, 7, {{1, 16, 0}})}).segments,
            0);
}

TEST(WeightsChange, AShadowKeepsTheMergedWeights) {
  WeightsInUse weights;
  WeightsChange change = change_to(1, weights);
  EXPECT_TRUE(change.switches && change.merges && !change.restores);
  weights = change.after;
  EXPECT_FALSE(change_to(1, weights).switches);
  change = change_to(kBaseModel, weights);
  EXPECT_TRUE(change.switches && !change.writes());
  weights = change.after;
  change = change_to(1, weights);
  EXPECT_TRUE(change.switches && !change.writes()) << "its merged weights are still there";
  EXPECT_TRUE(change_to(2, change.after).merges);
}

TEST(WeightsChange, InPlaceTheBaseIsRestored) {
  WeightsInUse weights{.in_place = true};
  WeightsChange change = change_to(1, weights);
  EXPECT_TRUE(change.merges && !change.restores);
  change = change_to(2, change.after);
  EXPECT_TRUE(change.merges && change.restores);
  change = change_to(kBaseModel, change.after);
  EXPECT_TRUE(!change.merges && change.restores);
  EXPECT_TRUE(change_to(2, change.after).merges);
}

}  // namespace
}  // namespace valora::scheduler
