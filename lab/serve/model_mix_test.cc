#include "lab/serve/model_mix.h"

#include <gtest/gtest.h>

#include <cmath>

namespace valora::bench {
namespace {

constexpr int kRequests = 100'000;

std::vector<double> shares(const std::string& distribution, int models) {
  const auto mix = mix_models(distribution, models, kRequests, 3);
  std::vector<double> shares(static_cast<size_t>(models));
  for (const int model : mix.value()) shares.at(static_cast<size_t>(model)) += 1.0 / kRequests;
  return shares;
}

TEST(ModelMix, UniformAsksAllModelsEquallyOften) {
  for (const double share : shares("uniform", 8)) EXPECT_NEAR(share, 0.125, 0.005);
}

TEST(ModelMix, ZipfFallsWithTheRank) {
  const auto got = shares("zipf:1.5", 5);
  double total = 0;
  for (int k = 1; k <= 5; ++k) total += std::pow(k, -1.5);
  for (int k = 1; k <= 5; ++k)
    EXPECT_NEAR(got[static_cast<size_t>(k - 1)], std::pow(k, -1.5) / total, 0.005) << k;
}

TEST(ModelMix, DistinctAlternatesModels) {
  EXPECT_EQ(mix_models("distinct", 3, 7, 9).value(), (std::vector<int>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(ModelMix, DependsOnTheSeed) {
  EXPECT_EQ(mix_models("uniform", 9, 100, 1).value(), mix_models("uniform", 9, 100, 1).value());
  EXPECT_NE(mix_models("uniform", 9, 100, 1).value(), mix_models("uniform", 9, 100, 2).value());
}

TEST(ModelMix, RefusesUnknownNames) {
  for (const char* text :
       {"", "zipf", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:1.5x", "normal"})
    EXPECT_FALSE(mix_models(text, 3, 3, 0).ok()) << text;
}

}  // namespace
}  // namespace valora::bench
