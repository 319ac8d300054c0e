// The gated delta rule with its convolution, computed whole and in steps, against double-precision
// loops.
#include "kernels/cpu/delta/gated_delta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

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
    conv = delta_values<T>(static_cast<size_t>(shape.taps * columns), 7, 0.7f);
    bias = delta_values<float>(shape.value_heads, 6);
    for (int64_t h = 0; h < shape.value_heads; ++h)
      rate.push_back(0.02f + 0.7f * static_cast<float>(h));
    a[0] = from_float<T>(30);  // beyond the limit of softplus
  }
  DeltaInputs<T> inputs() const {
    return {.qkv = qkv.data(),
            .ld_qkv = columns,
            .conv = conv.data(),
            .a = a.data(),
            .b = b.data(),
            .ld_a = shape.value_heads,
            .ld_b = shape.value_heads,
            .rate = rate.data(),
            .bias = bias.data(),
            .z = z.data(),
            .ld_z = width,
            .weight = weight.data()};
  }
  // Follows the definition, for rows [begin, end) of one sequence. → [end - begin, width]
  std::vector<double> expected(int64_t begin, int64_t end) const {
    std::vector<double> y;
    std::vector<std::vector<double>> states(shape.value_heads,
                                            std::vector<double>(shape.key_dim * shape.value_dim));
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < shape.value_heads; ++h) {
        const std::vector<double> o = step(t, h, convolved(begin, t), states[h]);
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
  std::vector<T> qkv, a, b, z, weight, conv;
  std::vector<float> rate, bias;

 private:
  // Row t of a sequence that starts at `begin`, rounded to T.
  std::vector<double> convolved(int64_t begin, int64_t t) const {
    std::vector<double> y;
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < shape.taps; ++j)
        if (const int64_t from = t - shape.taps + 1 + j; from >= begin)
          sum += double{to_float(qkv[from * columns + c])} * to_float(conv[j * columns + c]);
      y.push_back(to_float(from_float<T>(static_cast<float>(silu(sum)))));
    }
    return y;
  }
  std::vector<double> unit(const double* x) const {
    double square = 0;
    for (int64_t i = 0; i < shape.key_dim; ++i) square += x[i] * x[i];
    std::vector<double> y;
    for (int64_t i = 0; i < shape.key_dim; ++i) y.push_back(x[i] / std::sqrt(square + 1e-6));
    return y;
  }
  std::vector<double> step(int64_t t, int64_t h, const std::vector<double>& x,
                           std::vector<double>& s) const {
    const int64_t dk = shape.key_dim, dv = shape.value_dim;
    const double* row = x.data();
    const int64_t kh = h / (shape.value_heads / shape.key_heads);
    const auto q = unit(row + kh * dk), k = unit(row + (shape.key_heads + kh) * dk);
    const double* v = row + 2 * shape.key_heads * dk + h * dv;
    const double shifted = to_float(a[t * shape.value_heads + h]) + double{bias[h]},
                 decay = std::exp(-double{rate[h]} *
                                  (shifted > 20 ? shifted : std::log1p(std::exp(shifted)))),
                 beta = 1 / (1 + std::exp(-to_float(b[t * shape.value_heads + h])));
    std::vector<double> o(dv);
    for (int64_t c = 0; c < dv; ++c) {
      double memory = 0;
      for (int64_t i = 0; i < dk; ++i) memory += (s[i * dv + c] *= decay) * k[i];
      for (int64_t i = 0; i < dk; ++i) s[i * dv + c] += k[i] * beta * (v[c] - memory);
      for (int64_t i = 0; i < dk; ++i) o[c] += s[i * dv + c] * q[i] / std::sqrt(double(dk));
    }
    return o;
  }
};

// The state of one sequence, initially filled with values that must not be read.
template <typename T>
struct State {
  explicit State(const StateShape& shape) {
    const int64_t columns =
        2 * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim;
    for (int64_t h = 0; h < shape.value_heads; ++h)
      heads.emplace_back(static_cast<size_t>(head_floats(shape)), NAN);
    for (int64_t j = 1; j < shape.taps; ++j)
      window.emplace_back(static_cast<size_t>(columns), from_float<T>(NAN));
    for (auto& head : heads) head_pointers.push_back(head.data());
    for (auto& row : window) row_pointers.push_back(row.data());
  }
  DeltaState<T, float> written() { return {head_pointers.data(), row_pointers.data()}; }
  DeltaState<const T, const float> read() const {
    return {head_pointers.data(), row_pointers.data()};
  }
  std::vector<float> window_values() const {
    std::vector<float> values;
    for (const auto& row : window)
      for (const T v : row) values.push_back(to_float(v));
    return values;
  }
  std::vector<std::vector<float>> heads;
  std::vector<std::vector<T>> window;
  std::vector<float*> head_pointers;
  std::vector<T*> row_pointers;
};

template <typename T>
void expect_equal(const State<T>& one, const State<T>& other) {
  EXPECT_EQ(one.heads, other.heads);
  EXPECT_EQ(one.window_values(), other.window_values());
}

template <typename T>
class GatedDelta : public ::testing::Test {};
using Types = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(GatedDelta, Types);

StateShape delta_shape(int64_t taps, int64_t key_heads, int64_t value_heads, int64_t key_dim,
                       int64_t value_dim) {
  return {1,           2 * key_heads * key_dim + value_heads * value_dim,
          taps,        key_heads,
          value_heads, key_dim,
          value_dim,   4};
}
const StateShape kShapes[] = {delta_shape(4, 2, 4, 16, 32), delta_shape(3, 1, 3, 5, 7),
                              delta_shape(4, 2, 2, 130, 33), delta_shape(16, 1, 1, 20, 40)};

TYPED_TEST(GatedDelta, EqualsItsDefinition) {
  using T = TypeParam;
  for (const StateShape& shape : kShapes) {
    const DeltaWorld<T> world(shape, 150);
    const int64_t ends[] = {1, 4, 150};  // where the three sequences end
    std::vector<State<T>> states(3, State<T>(shape));
    std::vector<DeltaSpan<T>> spans;
    int64_t begin = 0;
    for (size_t i = 0; i < 3; begin = ends[i++]) {
      states[i] = State<T>(shape);
      spans.push_back({begin, ends[i] - begin, {}, states[i].written()});
    }
    std::vector<T> y(world.tokens * world.width);
    gated_delta<T>(shape, world.inputs(), spans, y.data(), two_threads);
    for (const DeltaSpan<T>& span : spans) {
      const auto expected = world.expected(span.begin, span.begin + span.count);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(to_float(y[span.begin * world.width + i]), expected[i], within<T>(expected[i]))
            << i;
    }
    for (int64_t j = 1; j < shape.taps; ++j)  // the second sequence has three rows
      for (int64_t c = 0; c < world.columns; ++c) {
        const int64_t row = 4 - shape.taps + j;
        EXPECT_EQ(to_float(states[1].window[j - 1][c]),
                  row < 1 ? 0 : to_float(world.qkv[row * world.columns + c]));
      }
  }
}

// Steps of any size, in place or from a state that must not change, give bit-identical results.
TYPED_TEST(GatedDelta, StepsDoNotChangeTheValues) {
  using T = TypeParam;
  for (const StateShape& shape : kShapes) {
    const DeltaWorld<T> world(shape, 150);
    State<T> whole(shape), kept(shape), end(shape), again(shape), late(shape);
    const DeltaSpan<T> all{
        0, 150, {}, whole.written(), {{{kept.written(), 77}, {late.written(), 150}}}};
    std::vector<T> y(world.tokens * world.width), parts(y.size());
    gated_delta<T>(shape, world.inputs(), {&all, 1}, y.data(), serial_for);
    const State<T> kept_before = kept;
    int64_t begin = 77;
    auto from = kept.read();
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{70}}) {
      const DeltaSpan<T> some{begin, count, from, end.written()};
      gated_delta<T>(shape, world.inputs(), {&some, 1}, parts.data(), two_threads);
      from = end.read();
      begin += count;
    }
    expect_equal(end, whole);
    expect_equal(late, whole);
    expect_equal(kept, kept_before);
    const size_t done = static_cast<size_t>(77 * world.width);
    EXPECT_EQ(std::memcmp(parts.data() + done, y.data() + done, (y.size() - done) * sizeof(T)), 0);
    const DeltaSpan<T> before{0, 77, {}, again.written()};
    gated_delta<T>(shape, world.inputs(), {&before, 1}, parts.data(), serial_for);
    expect_equal(again, kept);
    EXPECT_EQ(std::memcmp(parts.data(), y.data(), y.size() * sizeof(T)), 0);
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
