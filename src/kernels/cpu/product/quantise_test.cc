#include "kernels/cpu/product/quantise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace valora::kernels {
namespace {

struct Quantised {
  bool finite;
  std::vector<uint8_t> values;
  std::vector<float> scales;
};

Quantised quantised(const std::vector<float>& w, int bits, int64_t group) {
  Quantised q{false, std::vector<uint8_t>(w.size()),
              std::vector<float>((w.size() + group - 1) / group)};
  q.finite = quantise_row(w.data(), static_cast<int64_t>(w.size()), bits, group, q.values.data(),
                          q.scales.data());
  return q;
}

double squared_error(const std::vector<float>& w, const Quantised& q, int bits, int64_t group) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i)
    sum += std::pow(
        double(q.values[i] - (1 << (bits - 1))) * double(q.scales[i / group]) - double(w[i]), 2);
  return sum;
}

TEST(Quantise, KeepsRepresentableValues) {
  const Quantised q = quantised({-4, 3.5f, 0, 1, 0.5f}, 4, 4);
  EXPECT_TRUE(q.finite);
  EXPECT_EQ(q.scales, (std::vector<float>{0.5f, -0.0625f})) << "0.5 is -8 steps of -0.0625";
  EXPECT_EQ(q.values, (std::vector<uint8_t>{0, 15, 8, 10, 0}));
}

TEST(Quantise, EightBitsAreWithinHalfAStep) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> w(300);
  for (float& value : w) value = normal(rng);
  const Quantised q = quantised(w, 8, 128);
  ASSERT_EQ(q.scales.size(), 3);
  for (size_t i = 0; i < w.size(); ++i) {
    const float scale = q.scales[i / 128];
    EXPECT_EQ(std::bit_cast<uint32_t>(scale) & 0xffffu, 0) << "scales are of bf16";
    // Rounding the scale can shift the largest values by another quarter of a step.
    EXPECT_NEAR(static_cast<float>(q.values[i] - 128) * scale, w[i], 0.8f * scale);
  }
}

// Four bits: the error is at most that of the best scale that rounds all values to nearest.
TEST(Quantise, FourBitsBeatPlainRounding) {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> w(32 * 50);
  for (float& value : w) value = normal(rng);
  w[40] = 0.3f;  // an outlier
  const Quantised q = quantised(w, 4, 32);
  double plain = 0;
  for (size_t g = 0; g < 50; ++g) {
    float most = 0;
    for (size_t i = 0; i < 32; ++i) most = std::max(most, std::abs(w[32 * g + i]));
    for (size_t i = 0; i < 32; ++i) {
      const float scale = most / 7, integer = std::nearbyint(w[32 * g + i] / scale);
      plain += std::pow(double(integer * scale - w[32 * g + i]), 2);
    }
  }
  EXPECT_LT(squared_error(w, q, 4, 32), 0.8 * plain);
}

TEST(Quantise, ZerosAndTinyGroupsAreZero) {
  for (const float tiny : {0.0f, -0.0f, 1e-42f}) {
    const Quantised q = quantised(std::vector<float>(40, tiny), 4, 32);
    EXPECT_TRUE(q.finite);
    EXPECT_EQ(q.scales, (std::vector<float>{0, 0}));
    EXPECT_EQ(q.values, std::vector<uint8_t>(40, 8));
  }
}

TEST(Quantise, RefusesValuesThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()})
    for (const int bits : {4, 8})
      for (const size_t at : {0, 31, 50}) {
        std::vector<float> w(51, 1);
        w[at] = bad;
        EXPECT_FALSE(quantised(w, bits, 32).finite);
      }
  EXPECT_TRUE(quantised({std::numeric_limits<float>::max(), 1}, 8, 32).finite);
}

}  // namespace
}  // namespace valora::kernels
