// The gated delta rule and its convolution, computed whole and in steps, against double-precision
// loops.
#include "kernels/cpu/delta/gated_delta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/delta/short_conv.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using testing_support::two_threads;

template <typename T>
std::vector<T> delta_values(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<T> values(count);
  for (T& v : values) v = from_float<T>(normal(rng));
  return values;
}

template <typename T>
double within(double value) {
  return std::abs(value) * (sizeof(T) == 2 ? 1.0 / 200 : 1e-4) + (sizeof(T) == 2 ? 2e-3 : 2e-5);
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// A batch of rows with its inputs.
template <typename T>
struct DeltaWorld {
  DeltaWorld(StateShape s, int64_t rows) : shape(s), tokens(rows) {
    width = shape.value_heads * shape.value_dim;
    columns = 2 * shape.key_heads * shape.key_dim + width;
    const auto n = static_cast<size_t>(rows);
    qkv = delta_values<T>(n * columns, 1);
    a = delta_values<T>(n * shape.value_heads, 2);
    b = delta_values<T>(n * shape.value_heads, 3);
    z = delta_values<T>(n * width, 4);
    weight = delta_values<T>(shape.value_dim, 5);
    bias = delta_values<float>(shape.value_heads, 6);
    for (int64_t h = 0; h < shape.value_heads; ++h)
      rate.push_back(0.02f + 0.7f * static_cast<float>(h));
    a[0] = from_float<T>(30);  // beyond the limit of softplus
  }
  DeltaInputs<T> inputs() const {
    return {qkv.data(),  columns,     a.data(), b.data(), shape.value_heads, shape.value_heads,
            rate.data(), bias.data(), z.data(), width,    weight.data(),     1e-6f};
  }
  // Follows the definition, for rows [begin, end) of one sequence. → [end - begin, width]
  std::vector<double> expected(int64_t begin, int64_t end) const {
    std::vector<double> y;
    std::vector<std::vector<double>> states(shape.value_heads,
                                            std::vector<double>(shape.key_dim * shape.value_dim));
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < shape.value_heads; ++h) {
        const std::vector<double> o = step(t, h, states[h]);
        double square = 0;
        for (const double v : o) square += v * v;
        const double scale = 1 / std::sqrt(square / shape.value_dim + 1e-6);
        for (int64_t c = 0; c < shape.value_dim; ++c)
          y.push_back(o[c] * scale * to_float(weight[c]) *
                      silu(to_float(z[t * width + h * shape.value_dim + c])));
      }
    return y;
  }

  StateShape shape;
  int64_t tokens, width = 0, columns = 0;
  std::vector<T> qkv, a, b, z, weight;
  std::vector<float> rate, bias;

 private:
  std::vector<double> unit(const T* x) const {
    double square = 0;
    for (int64_t i = 0; i < shape.key_dim; ++i) square += std::pow(to_float(x[i]), 2.0);
    std::vector<double> y;
    for (int64_t i = 0; i < shape.key_dim; ++i)
      y.push_back(to_float(x[i]) / std::sqrt(square + 1e-6));
    return y;
  }
  std::vector<double> step(int64_t t, int64_t h, std::vector<double>& s) const {
    const int64_t dk = shape.key_dim, dv = shape.value_dim;
    const T* row = qkv.data() + t * columns;
    const int64_t kh = h / (shape.value_heads / shape.key_heads);
    const auto q = unit(row + kh * dk), k = unit(row + (shape.key_heads + kh) * dk);
    const T* v = row + 2 * shape.key_heads * dk + h * dv;
    const double x = to_float(a[t * shape.value_heads + h]) + double{bias[h]},
                 decay = std::exp(-double{rate[h]} * (x > 20 ? x : std::log1p(std::exp(x)))),
                 beta = 1 / (1 + std::exp(-to_float(b[t * shape.value_heads + h])));
    std::vector<double> o(dv);
    for (int64_t c = 0; c < dv; ++c) {
      double memory = 0;
      for (int64_t i = 0; i < dk; ++i) memory += (s[i * dv + c] *= decay) * k[i];
      for (int64_t i = 0; i < dk; ++i) s[i * dv + c] += k[i] * beta * (to_float(v[c]) - memory);
      for (int64_t i = 0; i < dk; ++i) o[c] += s[i * dv + c] * q[i] / std::sqrt(double(dk));
    }
    return o;
  }
};

// The matrices of one sequence, initially filled with values that must not be read.
struct HeadStates {
  explicit HeadStates(const StateShape& shape) {
    for (int64_t h = 0; h < shape.value_heads; ++h)
      memory.emplace_back(static_cast<size_t>(head_floats(shape)), NAN);
    for (auto& head : memory) pointers.push_back(head.data());
  }
  std::vector<std::vector<float>> memory;
  std::vector<float*> pointers;
};

template <typename T>
class GatedDelta : public ::testing::Test {};
using Types = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(GatedDelta, Types);

constexpr StateShape kShapes[] = {
    {1, 0, 4, 2, 4, 16, 32, 4}, {1, 0, 4, 1, 3, 5, 7, 4}, {1, 0, 4, 2, 2, 130, 33, 4}};

TYPED_TEST(GatedDelta, EqualsItsDefinition) {
  using T = TypeParam;
  for (const StateShape& shape : kShapes) {
    const DeltaWorld<T> world(shape, 150);
    const int64_t ends[] = {1, 4, 150};  // where the three sequences end
    std::vector<HeadStates> states(3, HeadStates(shape));
    std::vector<DeltaSpan> spans;
    int64_t begin = 0;
    for (size_t i = 0; i < 3; begin = ends[i++]) {
      states[i] = HeadStates(shape);
      spans.push_back({begin, ends[i] - begin, nullptr, states[i].pointers.data()});
    }
    std::vector<T> y(world.tokens * world.width);
    gated_delta<T>(shape, world.inputs(), spans, y.data(), two_threads);
    for (const DeltaSpan& span : spans) {
      const auto expected = world.expected(span.begin, span.begin + span.count);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(to_float(y[span.begin * world.width + i]), expected[i], within<T>(expected[i]))
            << i;
    }
  }
}

// Steps of any size, in place or from a state that must not change, give bit-identical results.
TYPED_TEST(GatedDelta, StepsDoNotChangeTheValues) {
  using T = TypeParam;
  for (const StateShape& shape : kShapes) {
    const DeltaWorld<T> world(shape, 150);
    HeadStates whole(shape), kept(shape), end(shape), again(shape), late(shape);
    const DeltaSpan all{0,
                        150,
                        nullptr,
                        whole.pointers.data(),
                        {{{kept.pointers.data(), 77}, {late.pointers.data(), 150}}}};
    std::vector<T> y(world.tokens * world.width), parts(y.size());
    gated_delta<T>(shape, world.inputs(), {&all, 1}, y.data(), serial_for);
    const auto kept_before = kept.memory;
    int64_t begin = 77;
    const float* const* from = kept.pointers.data();
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{70}}) {
      const DeltaSpan some{begin, count, from, end.pointers.data()};
      gated_delta<T>(shape, world.inputs(), {&some, 1}, parts.data(), two_threads);
      from = end.pointers.data();
      begin += count;
    }
    EXPECT_EQ(end.memory, whole.memory);
    EXPECT_EQ(late.memory, whole.memory);
    EXPECT_EQ(kept.memory, kept_before);
    const size_t done = static_cast<size_t>(77 * world.width);
    EXPECT_EQ(std::memcmp(parts.data() + done, y.data() + done, (y.size() - done) * sizeof(T)), 0);
    const DeltaSpan before{0, 77, nullptr, again.pointers.data()};
    gated_delta<T>(shape, world.inputs(), {&before, 1}, parts.data(), serial_for);
    EXPECT_EQ(again.memory, kept.memory);
    EXPECT_EQ(std::memcmp(parts.data(), y.data(), y.size() * sizeof(T)), 0);
  }
}

template <typename T>
struct Window {
  explicit Window(int64_t channels) : memory(3, std::vector<T>(channels, from_float<T>(NAN))) {
    for (auto& row : memory) pointers.push_back(row.data());
  }
  std::vector<std::vector<T>> memory;
  std::vector<T*> pointers;
};

TYPED_TEST(GatedDelta, ConvolutionEqualsItsDefinitionInAnySteps) {
  using T = TypeParam;
  constexpr int64_t kRows = 12, kTaps = 4;
  for (const int64_t channels : {3, 700}) {
    const auto x = delta_values<T>(kRows * channels, 1), w = delta_values<T>(kTaps * channels, 2);
    const ConvWeights<T> weights{w.data(), kTaps, channels};
    Window<T> whole(channels), kept(channels), steps(channels);
    std::vector<T> y(kRows * channels), parts(y.size());
    const ConvSpan<T> all{0, kRows, nullptr, whole.pointers.data(), {{{kept.pointers.data(), 2}}}};
    short_conv<T>(x.data(), channels, weights, {&all, 1}, y.data(), channels, two_threads);
    for (int64_t t = 0; t < kRows; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < kTaps; ++j)
          if (t - kTaps + 1 + j >= 0)
            sum += double{to_float(x[(t - kTaps + 1 + j) * channels + c])} *
                   to_float(w[j * channels + c]);
        ASSERT_NEAR(to_float(y[t * channels + c]), silu(sum), within<T>(silu(sum)));
      }
    EXPECT_EQ(to_float(kept.memory[0][0]), 0);
    EXPECT_EQ(to_float(kept.memory[2][1]), to_float(x[channels + 1]));
    int64_t begin = 0;
    const T* const* from = nullptr;
    for (const int64_t count : {2, 1, 1, 2, 3, 3}) {
      const ConvSpan<T> some{begin, count, from, steps.pointers.data()};
      short_conv<T>(x.data(), channels, weights, {&some, 1}, parts.data(), channels, serial_for);
      from = steps.pointers.data();
      begin += count;
    }
    EXPECT_EQ(std::memcmp(parts.data(), y.data(), y.size() * sizeof(T)), 0);
    for (size_t row = 0; row < 3; ++row)
      EXPECT_EQ(
          std::memcmp(steps.memory[row].data(), whole.memory[row].data(), channels * sizeof(T)), 0);
  }
}

TEST(StateLayout, PartsFitBlocksWithoutOverlap) {
  const StateShape shape{3, 100, 4, 2, 4, 16, 33, 2};
  const size_t least = StateLayout::least_block_bytes(shape);
  EXPECT_EQ(least, 2 * 32 * 16 * sizeof(float));
  for (const size_t block : {least, least + 64, 3 * least + 768}) {
    const StateLayout layout(shape, block);
    std::vector<std::vector<bool>> used(layout.blocks(), std::vector<bool>(block));
    const auto take = [&](StateLayout::Place place, size_t bytes) {
      ASSERT_EQ(place.offset % 64, 0u);
      ASSERT_LE(place.offset + bytes, block);
      for (size_t i = 0; i < bytes; ++i) {
        ASSERT_FALSE(used[place.block][place.offset + i]);
        used[place.block][place.offset + i] = true;
      }
    };
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      for (int64_t row = 0; row < 3; ++row) take(layout.row(layer, row), 200);
      for (int64_t head = 0; head < 4; ++head)
        take(layout.head(layer, head), head_floats(shape) * sizeof(float));
    }
    for (const auto& bytes : used)
      EXPECT_NE(std::find(bytes.begin(), bytes.end(), true), bytes.end());
  }
  EXPECT_EQ(StateLayout(shape, 3 * least + 768).blocks(), 4);
  EXPECT_EQ(StateLayout({}, 64).blocks(), 0);
}

}  // namespace
}  // namespace valora::kernels
