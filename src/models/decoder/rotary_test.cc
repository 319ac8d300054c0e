#include "models/decoder/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace valora::models {
namespace {

TEST(Rotary, SectionsTakeAnglesFromTheirAxis) {
  const at::Tensor positions = at::tensor({0, 1, 5, 0, 2, 7, 0, 3, 9}, at::kLong).view({3, 3});
  const Rotary text({.theta = 100}, 4, at::kCPU),
      mrope({.theta = 100, .sections = {1, 0, 1}}, 4, at::kCPU);
  const CosSin plain = text(positions.slice(0, 0, 1)), sections = mrope(positions);
  const double frequency[] = {1, 0.1};
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(plain.cos[t][i].item<float>(),
                  std::cos(positions[0][t].item<int64_t>() * frequency[i]), 1e-6);
      EXPECT_NEAR(sections.sin[t][i].item<float>(),
                  std::sin(positions[i == 0 ? 0 : 2][t].item<int64_t>() * frequency[i]), 1e-6);
    }
}

TEST(Rotary, InterleavedAxesAlternateUntilSectionEnds) {
  const at::Tensor positions = at::tensor({2, 3, 5}, at::kLong).view({3, 1});
  const Rotary rotary({.theta = 100, .sections = {3, 2, 1}, .interleaved = true}, 12, at::kCPU);
  const CosSin at_one = rotary(positions);
  const double position[] = {2, 3, 5, 2, 3, 2};  // width's section has ended, so the last is time's
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(at_one.sin[0][i].item<double>(), std::sin(position[i] * std::pow(100, -i / 6.0)),
                1e-6)
        << i;
}

TEST(Rotary, LinearAndLlama3ScaleFrequencies) {
  const at::Tensor one = at::ones({1, 1}, at::kLong);
  const auto angle = [&](const RotaryConfig& config, int i) {
    const CosSin at_one = Rotary(config, 6, at::kCPU)(one);
    return std::atan2(at_one.sin[0][i].item<double>(), at_one.cos[0][i].item<double>());
  };
  const RotaryConfig plain{.theta = 1000};  // frequencies 1, 0.1, 0.01: wavelengths 6.3, 63, 630
  RotaryConfig linear = plain, llama3 = plain;
  linear.linear_factor = 4;
  EXPECT_NEAR(angle(linear, 1), 0.1 / 4, 1e-7);
  llama3.llama3 =
      Llama3Scaling{.factor = 8, .low_factor = 1, .high_factor = 4, .original_positions = 100};
  EXPECT_NEAR(angle(llama3, 0), 1, 1e-6) << "shorter than 100 / 4: as it was";
  EXPECT_NEAR(angle(llama3, 2), 0.01 / 8, 1e-7) << "longer than 100";
  const double smooth = (100 / (2 * M_PI / 0.1) - 1) / 3;
  EXPECT_NEAR(angle(llama3, 1), (1 - smooth) * 0.1 / 8 + smooth * 0.1, 1e-7) << "between";
}

// Expected values computed by hand from transformers' formulas.
TEST(Rotary, YarnAndLongRopeMatchTransformers) {
  const at::Tensor one = at::ones({1, 1}, at::kLong);
  RotaryConfig yarn{.theta = 1000, .attention_factor = 2};  // frequencies 1, 0.1, 0.01
  // Turns in 100 positions: 15.9, 1.59, 0.159. Fractional indices with 4 turns and with 1: 0.6 and
  // 1.2.
  yarn.yarn = YarnScaling{.factor = 8, .beta_fast = 4, .beta_slow = 1, .original_positions = 100};
  const CosSin whole = Rotary(yarn, 6, at::kCPU)(one);
  const auto expect_angle = [&](const CosSin& at_one, int i, double angle, double size) {
    EXPECT_NEAR(at_one.cos[0][i].item<double>(), size * std::cos(angle), 1e-6) << i;
    EXPECT_NEAR(at_one.sin[0][i].item<double>(), size * std::sin(angle), 1e-6) << i;
  };
  expect_angle(whole, 0, 1, 2);
  expect_angle(whole, 1, (0.1 + 0.1 / 8) / 2, 2);  // bounds rounded to whole indices: 0 and 2
  expect_angle(whole, 2, 0.01 / 8, 2);
  yarn.yarn->truncate = false;
  const auto index_of = [](double turns) {
    return 6 * std::log(100 / (turns * 2 * M_PI)) / (2 * std::log(1000));
  };
  const double ramp = (1 - index_of(4)) / (index_of(1) - index_of(4));
  expect_angle(Rotary(yarn, 6, at::kCPU)(one), 1, 0.1 / 8 * ramp + 0.1 * (1 - ramp), 2);

  RotaryConfig longer{.theta = 1000};
  longer.long_rope = LongRopeScaling{.short_factors = {1, 2, 4}, .long_factors = {2, 3, 8}};
  expect_angle(Rotary(longer, 6, at::kCPU)(one), 2, 0.01 / 4, 1);
}

// The frequencies of single tokens, by sequence length.
at::Tensor frequencies_at(const RotaryConfig& config, const std::vector<int64_t>& lengths) {
  const at::Tensor ones = at::ones({1, static_cast<int64_t>(lengths.size())}, at::kLong);
  const CosSin turned = Rotary(config, 6, at::kCPU)(ones, at::tensor(lengths, at::kLong));
  return at::atan2(turned.sin, turned.cos).to(at::kDouble);
}

TEST(Rotary, LongRopeSwitchesFactorsBeyondOriginalPositions) {
  RotaryConfig config{.theta = 1000, .attention_factor = 1.5};
  config.long_rope = LongRopeScaling{.short_factors = {1, 2, 4}, .long_factors = {2, 3, 8}};
  config.change = {.beyond = 10};
  const at::Tensor found = frequencies_at(config, {1, 10, 11, 500});
  const std::vector<double> at_short{1, 0.1 / 2, 0.01 / 4}, at_long{0.5, 0.1 / 3, 0.01 / 8};
  for (int t = 0; t < 4; ++t)
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(found[t][i].item<double>(), (t < 2 ? at_short : at_long)[i], 1e-7) << t << i;
  const at::Tensor one = at::ones({1, 1}, at::kLong);
  const CosSin turned = Rotary(config, 6, at::kCPU)(one, at::full({1}, 11, at::kLong));
  EXPECT_NEAR(turned.cos[0][0].item<double>(), 1.5 * std::cos(0.5), 1e-6);
}

TEST(Rotary, DynamicThetaGrowsWithEachTokensLength) {
  RotaryConfig config{.theta = 1000};
  config.dynamic = DynamicScaling{.factor = 2, .positions = 10};
  config.change = {.beyond = 10, .each = true};
  const std::vector<int64_t> lengths{3, 10, 11, 15, 40};
  const at::Tensor found = frequencies_at(config, lengths);
  for (size_t t = 0; t < lengths.size(); ++t) {
    const double growth = lengths[t] <= 10 ? 1 : 2.0 * static_cast<double>(lengths[t]) / 10 - 1;
    const double base = 1000 * std::pow(growth, 6.0 / 4);
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(found[static_cast<int64_t>(t)][i].item<double>(), std::pow(base, -i / 3.0), 1e-7)
          << lengths[t] << ' ' << i;
  }
  // Without lengths, and within the limit, bit-identical to a rope without scaling.
  const at::Tensor positions = at::arange(0, 9, at::kLong).view({1, 9});
  const Rotary plain({.theta = 1000}, 6, at::kCPU), dynamic(config, 6, at::kCPU);
  EXPECT_TRUE(at::equal(plain(positions).cos, dynamic(positions).cos));
  EXPECT_TRUE(
      at::equal(plain(positions).sin, dynamic(positions, at::arange(2, 11, at::kLong)).sin));
}

TEST(Rotary, DoublingThetaFollowsPromptLength) {
  RotaryConfig config{.theta = 1000};
  config.doubling = DoublingScaling{.positions = 10, .doublings = 3};
  config.change = {.beyond = 10, .each = true, .of_prompt = true};
  const std::vector<int64_t> lengths{1, 10, 11, 20, 21, 40, 41, 80};
  const std::vector<double> alphas{1, 1, 3, 3, 7, 7, 15, 15};
  const at::Tensor found = frequencies_at(config, lengths);
  for (size_t t = 0; t < lengths.size(); ++t)
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(found[static_cast<int64_t>(t)][i].item<double>(),
                  std::pow(1000 * std::pow(alphas[t], 6.0 / 4), -i / 3.0), 1e-7)
          << lengths[t] << ' ' << i;
}

TEST(Rotary, QueriesBeyondTrainedLengthAreScaledByLog) {
  const Rotary rotary({.theta = 1000, .log_beyond = 4}, 6, at::kCPU);
  const at::Tensor positions = at::arange(0, 9, at::kLong).view({1, 9});
  const CosSin keys = rotary(positions), queries = rotary.of_queries(keys, positions);
  for (int t = 0; t < 9; ++t)
    EXPECT_NEAR((queries.cos[t] / keys.cos[t])[0].item<double>(),
                t < 4 ? 1 : std::log(t + 1.0) / std::log(4.0), 1e-6);
  const at::Tensor early = positions.slice(1, 0, 4);
  const CosSin few = rotary(early);
  EXPECT_TRUE(rotary.of_queries(few, early).cos.is_same(few.cos)) << "there is nothing to do";
}

}  // namespace
}  // namespace valora::models
