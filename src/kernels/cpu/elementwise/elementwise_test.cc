// The elementwise kernels against plain double-precision loops, at odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/isa/vector_math.h"
#include "kernels/testing/projection_reference.h"

namespace valora::kernels {
namespace {

template <typename T>
std::vector<T> random_vector(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<T> values(count);
  for (T& v : values) v = from_float<T>(normal(rng));
  return values;
}

TEST(Bf16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(from_float<bf16>(1.0f).bits, 0x3f80);
  EXPECT_EQ(from_float<bf16>(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);  // tie to even
  EXPECT_EQ(from_float<bf16>(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(to_float(from_float<bf16>(NAN))));
}

TEST(VectorMath, ExpIsWithinTwoUlp) {
  for (float x = -86; x < 87; x += 0.0137f)
    EXPECT_NEAR(exp_approx(x) / std::exp(double(x)), 1.0, 2.4e-7) << x;
}

TEST(Argmax, ReturnsFirstMaximumAndDetectsNaN) {
  for (int64_t n : {1, 15, 16, 17, 1023, 1024, 1025, 3000})
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<float> x = random_vector<float>(n, static_cast<uint32_t>(n));
      x[at] = 50;
      if (at + 1 < n) x[n - 1] = 50;
      Argmax best = argmax(x.data(), n);
      EXPECT_EQ(best.index, at) << n;
      EXPECT_EQ(best.value, 50);
      EXPECT_TRUE(best.numbers);
      for (const float bad : {NAN, INFINITY}) {
        x[n / 3] = bad;
        EXPECT_FALSE(argmax(x.data(), n).numbers) << n;
      }
      std::fill(x.begin(), x.end(), -INFINITY);
      best = argmax(x.data(), n);
      EXPECT_EQ(best.value, -INFINITY);
      EXPECT_LT(best.index, n);
      EXPECT_TRUE(best.numbers);
    }
}

TEST(KeepAllowed, KeepsTheValuesWhoseBitsAreSet) {
  std::mt19937 rng(3);
  for (int64_t n : {1, 31, 32, 33, 64, 1000}) {
    const std::vector<float> before = random_vector<float>(n, static_cast<uint32_t>(n));
    std::vector<uint32_t> allowed(n / 32 + 1);
    for (size_t w = 0; w < allowed.size(); ++w)
      allowed[w] = w % 3 == 0 ? static_cast<uint32_t>(rng()) : w % 3 == 1 ? ~uint32_t{0} : 0;
    std::vector<float> x = before;
    keep_allowed(x.data(), n, allowed.data());
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(x[i], allowed[i / 32] >> (i % 32) & 1 ? before[i] : -INFINITY) << i;
  }
}

template <typename T>
class Elementwise : public ::testing::Test {};
using Types = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(Elementwise, Types);

template <typename T>
double tolerance(double value) {
  return std::abs(value) * (sizeof(T) == 2 ? 1.0 / 200 : 1e-5) + 1e-6;
}

TYPED_TEST(Elementwise, RmsNormWithResidual) {
  using T = TypeParam;
  const int64_t rows = 5, width = 37;
  auto x = random_vector<T>(rows * width, 1);
  const auto residual = random_vector<T>(rows * width, 2), weight = random_vector<T>(width, 3);
  std::vector<T> y(rows * width);
  for (const float offset : {0.f, 1.f}) {
    rms_norm(x.data(), residual.data(), weight.data(), offset, 1e-6f, rows, width, y.data(),
             serial_for);
    for (int64_t t = 0; t < rows; ++t) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::pow(to_float(x[t * width + i]), 2.0);
      for (int64_t i = 0; i < width; ++i) {
        const double expected = to_float(x[t * width + i]) / std::sqrt(sum / width + 1e-6) *
                                (to_float(weight[i]) + offset);
        ASSERT_NEAR(to_float(y[t * width + i]), expected, tolerance<T>(expected));
      }
    }
  }
}

TYPED_TEST(Elementwise, GatesByTheActivation) {
  using T = TypeParam;
  const int64_t rows = 20, width = 50, ldy = 53;
  const auto gate = random_vector<float>(rows * width, 1, 8),
             up = random_vector<float>(rows * width, 2);
  for (const Gate activation : {Gate::kSilu, Gate::kGeluTanh}) {
    std::vector<T> y(rows * ldy, from_float<T>(-77));
    gate_rows(activation, gate.data(), up.data(), rows, width, y.data(), ldy);
    for (int64_t i = 0; i < rows * ldy; ++i) {
      const int64_t at = i / ldy * width + i % ldy;
      if (i % ldy >= width) {
        ASSERT_EQ(to_float(y[i]), -77);
        continue;
      }
      const double expected = testing_support::activated(activation, gate[at]) * up[at];
      ASSERT_NEAR(to_float(y[i]), expected, tolerance<T>(expected));
    }
  }
}

TYPED_TEST(Elementwise, RotateHalf) {
  using T = TypeParam;
  const int64_t rows = 3, heads = 2, dim = 12, ldh = 15;  // the gap between heads must not change
  auto x = random_vector<T>(rows * heads * ldh, 1);
  const auto before = x;
  std::vector<float> cos(rows * dim / 2), sin(rows * dim / 2);
  for (size_t i = 0; i < cos.size(); ++i) cos[i] = std::cos(0.1f * i), sin[i] = std::sin(0.1f * i);
  rotate_half(x.data(), rows, heads * ldh, heads, ldh, dim, cos.data(), sin.data(), serial_for);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = dim; i < ldh; ++i)
        ASSERT_EQ(to_float(x[(t * heads + h) * ldh + i]),
                  to_float(before[(t * heads + h) * ldh + i]));
      for (int64_t i = 0; i < dim / 2; ++i) {
        const int64_t at = (t * heads + h) * ldh + i;
        const double a = to_float(before[at]), b = to_float(before[at + dim / 2]);
        const double c = cos[t * dim / 2 + i], s = sin[t * dim / 2 + i];
        ASSERT_NEAR(to_float(x[at]), a * c - b * s, tolerance<T>(2));
        ASSERT_NEAR(to_float(x[at + dim / 2]), b * c + a * s, tolerance<T>(2));
      }
    }
}

}  // namespace
}  // namespace valora::kernels
