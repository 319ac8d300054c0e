// Linears that round their inputs, with our kernels and with the reference backend.
#include "ops/linear/input_rounding.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/device/backend.h"
#include "ops/linear/linear.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::ops {
namespace {

using Grid = InputRounding::Grid;

TEST(RoundedInputs, UseTokensOwnScale) {
  const at::Tensor x =
      at::tensor({1.f, -0.5f, 0.013f, 0.f, 0.f, 0.f, -255.f, 3.f, 0.9f}).view({3, 3});
  const at::Tensor y = rounded_inputs(x, {Grid::kInt8});
  const auto rows = y.accessor<float, 2>();
  EXPECT_FLOAT_EQ(rows[0][0], 127 / 127.5f) << "the largest value is cut off at 127 steps";
  EXPECT_FLOAT_EQ(rows[0][1], -64 / 127.5f) << "-63.75 steps";
  EXPECT_FLOAT_EQ(rows[0][2], 2 / 127.5f);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rows[1][i], 0);
  EXPECT_FLOAT_EQ(rows[2][0], -256) << "-127.5 steps go to the even -128";
  EXPECT_FLOAT_EQ(rows[2][1], 4);
  EXPECT_FLOAT_EQ(rows[2][2], 0);
}

TEST(RoundedInputs, PartEqualsWhole) {
  const at::Tensor x = at::tensor({1.f, -0.3f, 0.013f, -8.f, 2.9f, 0.9f}).view({2, 3});
  const at::Tensor largest = largest_inputs(x), part = x.slice(1, 1).contiguous();
  for (const Grid grid : {Grid::kInt8, Grid::kFp8}) {
    const at::Tensor whole = rounded_inputs(x, {grid}).slice(1, 1);
    EXPECT_TRUE(at::equal(rounded_inputs(part, {grid}, largest), whole));
    EXPECT_FALSE(at::equal(rounded_inputs(part, {grid}), whole));
  }
}

TEST(RoundedInputs, UseStoredScaleWithinGrid) {
  const at::Tensor x = at::tensor({0.3f, 100.f, -100.f, 0.24f}).view({1, 4}).to(at::kBFloat16);
  const at::Tensor y = rounded_inputs(x, {Grid::kInt8, 0.5f});
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(y.to(at::kFloat), at::tensor({0.5f, 63.5f, -64.f, 0.f}).view({1, 4})));
}

TEST(RoundedInputs, Fp8KeepsThreeFractionBits) {
  const at::Tensor x = at::tensor({448.f, 300.f, 1.06f, 0.001f, -1000.f, 33.f}).view({2, 3});
  const at::Tensor y = rounded_inputs(x, {Grid::kFp8, 1.f});
  EXPECT_TRUE(
      at::equal(y, at::tensor({448.f, 288.f, 1.f, 0.001953125f, -448.f, 32.f}).view({2, 3})))
      << y;
  const at::Tensor own = rounded_inputs(x, {Grid::kFp8});
  EXPECT_FLOAT_EQ(own[1][1].item<float>(), -1000);
}

TEST(RoundedInputs, NonFiniteTokenStaysNonFinite) {
  for (const Grid grid : {Grid::kInt8, Grid::kFp8}) {
    const at::Tensor x = at::tensor({NAN, 1.f, 1.f, 1.f}).view({2, 2});
    const at::Tensor y = rounded_inputs(x, {grid});
    EXPECT_TRUE(std::isnan(y[0][0].item<float>()));
    EXPECT_NEAR(y[1][0].item<float>(), 1, 0.01) << "the other token's are its own";
  }
}

class RoundingLinears : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { set_backend(GetParam()); }
  void TearDown() override { set_backend(Backend::kNative); }
  at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat); }
  Weight weight(const at::Tensor& w, std::optional<InputRounding> rounding) {
    Weight made(w, at::kFloat, at::kCPU);
    if (rounding) made.set_input_rounding(*rounding);
    return made;
  }
  static at::Tensor sum(const at::Tensor& x, const Weight& w) {
    return at::mm(w.input_rounding() ? rounded_inputs(x, *w.input_rounding()) : x,
                  w.unpacked().t());
  }
  static void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
    EXPECT_TRUE(at::allclose(actual, expected, 1e-4, 1e-4));
  }
  // w: [33, 40].
  void expect_unrounded_adapter_inputs(const Weight& w) {
    const at::Tensor x = random({5, 40});
    AdapterWeights adapter(1);
    adapter.set(0, {weight(random({4, 40}), {}), weight(random({33, 4}), {})}, 0.5f);
    LoraBatch lora;
    lora.add(0, 5, adapter, 1);
    const LoraWeight& pair = *adapter.find(0);
    const at::Tensor low = at::mm(at::mm(x, pair.a.unpacked().t()), pair.b.unpacked().t());
    expect_close(linear(x, {&w, 0}, lora), sum(x, w) + 0.5 * low);
  }
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};
INSTANTIATE_TEST_SUITE_P(Backends, RoundingLinears,
                         ::testing::Values(Backend::kNative, Backend::kReference));

TEST_P(RoundingLinears, AdaptersUseUnroundedInputs) {
  expect_unrounded_adapter_inputs(weight(random({33, 40}), InputRounding{Grid::kInt8, 0.3f}));
}

TEST_P(RoundingLinears, MayDifferWithinProjection) {
  const at::Tensor x = random({5, 40});
  const Weight fine = weight(random({33, 40}), InputRounding{Grid::kInt8}),
               coarse = weight(random({33, 40}), InputRounding{Grid::kInt8, 0.5f}),
               exact = weight(random({33, 40}), std::nullopt);
  const ModuleWeight all[] = {{&fine}, {&coarse}, {&exact}};
  const auto ys = project(x, all);
  for (size_t i = 0; i < 3; ++i) expect_close(ys[i], sum(x, *all[i].weight));
  expect_close(gated(x, all[0], all[0]), at::silu(sum(x, fine)) * sum(x, fine));
  expect_close(gated(x, all[0], all[1]), at::silu(sum(x, fine)) * sum(x, coarse));
  expect_close(linear_float(x, coarse), sum(x, coarse));
}

// The native kernels multiply integers by integers; the reference backend decodes both.
class RoundingIntegers : public RoundingLinears {
 protected:
  Weight integers(int64_t out, int64_t in, int bits, int64_t group, const InputRounding& rounding) {
    Weight w(quantise(random({out, in}), {bits, group}), at::kFloat, at::kCPU);
    w.set_input_rounding(rounding);
    EXPECT_EQ(w.multiplies_rounded(),
              GetParam() == Backend::kNative && rounding.grid == Grid::kInt8);
    return w;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, RoundingIntegers,
                         ::testing::Values(Backend::kNative, Backend::kReference));

TEST_P(RoundingIntegers, MatchDecodedProducts) {
  const at::Tensor x = random({5, 96});
  for (const InputRounding& rounding :
       {InputRounding{Grid::kInt8}, {Grid::kInt8, 0.02f}, {Grid::kFp8}})
    for (const auto& [bits, group] : {std::pair<int, int64_t>{8, 96}, {8, 32}, {4, 32}}) {
      const Weight w = integers(33, 96, bits, group, rounding);
      expect_close(linear(x, w), sum(x, w));
      expect_close(linear_float(x, w), sum(x, w));
    }
}

TEST_P(RoundingIntegers, DoNotRoundAdapterInputs) {
  expect_unrounded_adapter_inputs(integers(33, 40, 8, 40, {Grid::kInt8}));
}

TEST_P(RoundingIntegers, PartialInputsUseWholeTokenScale) {
  const at::Tensor x = random({5, 96}), largest = largest_inputs(x);
  const QuantisedTensor all = quantise(random({33, 96}), {8, 96});
  Weight whole(all, at::kFloat, at::kCPU);
  whole.set_input_rounding({Grid::kInt8});
  at::Tensor total = at::zeros({5, 33});
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 40}, {40, 96}}) {
    Weight part(all.part({0, 33}, {begin, end}), at::kFloat, at::kCPU);
    part.set_input_rounding({Grid::kInt8});
    total += linear_float(x.slice(1, begin, end).contiguous(), part, largest);
  }
  expect_close(total, sum(x, whole));
}

TEST_P(RoundingIntegers, ShareALaunchWithFloats) {
  const at::Tensor x = random({5, 40});
  const Weight whole = integers(33, 40, 8, 40, {Grid::kInt8}),
               floats = weight(random({33, 40}), InputRounding{Grid::kInt8});
  const ModuleWeight both[] = {{&whole}, {&floats}};
  const auto ys = project(x, both);
  for (size_t i = 0; i < 2; ++i) expect_close(ys[i], sum(x, *both[i].weight));
}

}  // namespace
}  // namespace valora::ops
