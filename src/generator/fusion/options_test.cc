#include "generator/fusion/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace valora::generator {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::function<void(FusionOptions&)>& change) {
  FusionOptions options;
  change(options);
  const Status checked = check(options);
  return checked.ok() ? "" : checked.error().message;
}

TEST(FusionOptions, RefusesALearningRateOutOfRange) {
  for (const double rate : {0.0, -1e-4, std::nan(""), HUGE_VAL, 3.0})
    EXPECT_THAT(refusal([&](FusionOptions& o) { o.training.learning_rate = rate; }),
                HasSubstr("--learning-rate takes a number above 0 and at most 0.5, not "))
        << rate;
  for (const double rate : {1e-6, 2e-4, 1e-2})
    EXPECT_EQ(refusal([&](FusionOptions& o) { o.training.learning_rate = rate; }), "") << rate;
}

TEST(FusionOptions, RefusesNumbersOutOfRange) {
  const std::vector<std::pair<std::function<void(FusionOptions&)>, const char*>> cases{
      {[](auto& o) { o.training.warmup = 1; }, "--warmup takes a number of at least 0 and below 1"},
      {[](auto& o) { o.training.weight_decay = std::nan(""); }, "--weight-decay"},
      {[](auto& o) { o.training.clip = -1; }, "--clip takes a number of at least 0, not -1"},
      {[](auto& o) { o.training.dropout = std::nan(""); }, "--dropout"},
      {[](auto& o) { o.replay = 1; }, "--replay"},
      {[](auto& o) { o.alpha_per_rank = 0; }, "--alpha-per-rank"},
      {[](auto& o) { o.training.steps = 0; }, "--steps must be at least 1"},
      {[](auto& o) { o.training.batch = 0; }, "--batch"},
      {[](auto& o) { o.training.tokens_per_pass = 0; }, "--tokens-per-pass"},
      {[](auto& o) { o.training.evaluate_every = -1; }, "--evaluate-every"},
      {[](auto& o) { o.training.patience = 0; }, "--patience"},
      {[](auto& o) { o.training.checkpoint_every = -1; }, "--checkpoint-every"},
      {[](auto& o) { o.validation_limit = 0; }, "--validation-limit"},
      {[](auto& o) { o.ranks = {16, 8}; }, "--rank takes ascending ranks"},
      {[](auto& o) { o.ranks = {}; }, "--rank needs"}};
  for (const auto& [change, words] : cases) EXPECT_THAT(refusal(change), HasSubstr(words));
  EXPECT_EQ(refusal([](auto&) {}), "");
}

}  // namespace
}  // namespace valora::generator
