// Every kernel but the products (project_test.cc) against a plain double-precision loop, at odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/cpu/vector_math.h"

namespace valora::kernels {
namespace {

template <typename T>
std::vector<T> random_values(size_t count, uint32_t seed, float scale = 1) {
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
  auto x = random_values<T>(rows * width, 1);
  const auto residual = random_values<T>(rows * width, 2), weight = random_values<T>(width, 3);
  std::vector<T> y(rows * width);
  rms_norm(x.data(), residual.data(), weight.data(), 1e-6f, rows, width, y.data(), serial_for);
  for (int64_t t = 0; t < rows; ++t) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += std::pow(to_float(x[t * width + i]), 2.0);
    for (int64_t i = 0; i < width; ++i) {
      const double expected = to_float(x[t * width + i]) / std::sqrt(sum / width + 1e-6) * to_float(weight[i]);
      ASSERT_NEAR(to_float(y[t * width + i]), expected, tolerance<T>(expected));
    }
  }
}

TYPED_TEST(Elementwise, SiluMul) {
  using T = TypeParam;
  const auto gate = random_values<T>(1000, 1, 8), up = random_values<T>(1000, 2);
  std::vector<T> y(1000);
  silu_mul(gate.data(), up.data(), 1000, y.data(), serial_for);
  for (int i = 0; i < 1000; ++i) {
    const double g = to_float(gate[i]), expected = g / (1 + std::exp(-g)) * to_float(up[i]);
    ASSERT_NEAR(to_float(y[i]), expected, tolerance<T>(expected));
  }
}

// Scattered blocks, grouped heads, a prefill chunk behind a context, decodes; keys past the position
// are poisoned so that a look ahead shows.
TYPED_TEST(Elementwise, PagedAttention) {
  using T = TypeParam;
  const int64_t heads = 6, kv_heads = 2, dim = 20, block_tokens = 16, layers = 2, layer = 1;
  const int64_t half = block_tokens * kv_heads * dim, block = layers * 2 * half;
  const std::vector<std::vector<int32_t>> tables{{7, 2}, {5}, {0, 3, 6}};
  const int64_t context[] = {20, 0, 40}, queries[] = {1, 9, 5};
  std::vector<T> arena(8 * block, from_float<T>(1e4f));
  const KvLayer<T> kv{arena.data() + layer * 2 * half, block, half, block_tokens, kv_heads, dim};

  std::vector<QuerySpan> spans;
  std::vector<std::vector<T>> keys, values;
  int64_t tokens = 0;
  for (int s = 0; s < 3; ++s) {
    const int64_t length = context[s] + queries[s];
    keys.push_back(random_values<T>(length * kv_heads * dim, 10 + s));
    values.push_back(random_values<T>(length * kv_heads * dim, 20 + s));
    const QuerySpan past{0, context[s], 0, tables[s].data()};
    store_kv(keys[s].data(), values[s].data(), kv_heads * dim, std::span(&past, 1), kv, serial_for);
    const QuerySpan now{0, queries[s], context[s], tables[s].data()};
    const int64_t offset = context[s] * kv_heads * dim;
    store_kv(keys[s].data() + offset, values[s].data() + offset, kv_heads * dim, std::span(&now, 1), kv, serial_for);
    spans.push_back({tokens, queries[s], context[s], tables[s].data()});
    tokens += queries[s];
  }
  const auto q = random_values<T>(tokens * heads * dim, 3);
  std::vector<T> o(tokens * heads * dim);
  paged_attention(q.data(), heads * dim, o.data(), heads * dim, heads, 0.2f, spans, kv, serial_for);
  for (int s = 0; s < 3; ++s)
    for (int64_t i = 0; i < queries[s]; ++i)
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t length = context[s] + i + 1, g = h / (heads / kv_heads);
        const T* query = &q[(spans[s].begin + i) * heads * dim + h * dim];
        std::vector<double> p(length);
        double total = 0;
        for (int64_t t = 0; t < length; ++t) {
          double score = 0;
          for (int64_t d = 0; d < dim; ++d) score += to_float(query[d]) * to_float(keys[s][(t * kv_heads + g) * dim + d]);
          total += p[t] = std::exp(0.2 * score);
        }
        for (int64_t d = 0; d < dim; ++d) {
          double expected = 0;
          for (int64_t t = 0; t < length; ++t) expected += p[t] / total * to_float(values[s][(t * kv_heads + g) * dim + d]);
          ASSERT_NEAR(to_float(o[(spans[s].begin + i) * heads * dim + h * dim + d]), expected, tolerance<T>(expected) + 1e-5);
        }
      }
}

TYPED_TEST(Elementwise, RotateHalf) {
  using T = TypeParam;
  const int64_t rows = 3, heads = 2, dim = 12;
  auto x = random_values<T>(rows * heads * dim, 1);
  const auto before = x;
  std::vector<float> cos(rows * dim / 2), sin(rows * dim / 2);
  for (size_t i = 0; i < cos.size(); ++i) cos[i] = std::cos(0.1f * i), sin[i] = std::sin(0.1f * i);
  rotate_half(x.data(), rows, heads * dim, heads, dim, cos.data(), sin.data(), serial_for);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < dim / 2; ++i) {
        const int64_t at = (t * heads + h) * dim + i;
        const double a = to_float(before[at]), b = to_float(before[at + dim / 2]);
        const double c = cos[t * dim / 2 + i], s = sin[t * dim / 2 + i];
        ASSERT_NEAR(to_float(x[at]), a * c - b * s, tolerance<T>(2));
        ASSERT_NEAR(to_float(x[at + dim / 2]), b * c + a * s, tolerance<T>(2));
      }
}

}  // namespace
}  // namespace valora::kernels
