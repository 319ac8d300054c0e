// Linears that round their inputs, with the kernels and with the reference backend.
#include "ops/input_rounding.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/backend.h"
#include "ops/linear.h"

namespace valora::ops {
namespace {

using Grid = InputRounding::Grid;

TEST(RoundedInputs, AreStepsOfATokensOwnScale) {
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

TEST(RoundedInputs, OfAPartAreThoseOfTheWhole) {
  const at::Tensor x = at::tensor({1.f, -0.3f, 0.013f, -8.f, 2.9f, 0.9f}).view({2, 3});
  const at::Tensor largest = largest_inputs(x), part = x.slice(1, 1).contiguous();
  for (const Grid grid : {Grid::kInt8, Grid::kFp8}) {
    const at::Tensor whole = rounded_inputs(x, {grid}).slice(1, 1);
    EXPECT_TRUE(at::equal(rounded_inputs(part, {grid}, largest), whole));
    EXPECT_FALSE(at::equal(rounded_inputs(part, {grid}), whole));
  }
}

TEST(RoundedInputs, AreStepsOfAStoredScaleWithinTheGrid) {
  const at::Tensor x = at::tensor({0.3f, 100.f, -100.f, 0.24f}).view({1, 4}).to(at::kBFloat16);
  const at::Tensor y = rounded_inputs(x, {Grid::kInt8, 0.5f});
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(y.to(at::kFloat), at::tensor({0.5f, 63.5f, -64.f, 0.f}).view({1, 4})));
}

TEST(RoundedInputs, InFloatsOfEightBitsHaveThreeBitsOfFraction) {
  const at::Tensor x = at::tensor({448.f, 300.f, 1.06f, 0.001f, -1000.f, 33.f}).view({2, 3});
  const at::Tensor y = rounded_inputs(x, {Grid::kFp8, 1.f});
  EXPECT_TRUE(
      at::equal(y, at::tensor({448.f, 288.f, 1.f, 0.001953125f, -448.f, 32.f}).view({2, 3})))
      << y;
  const at::Tensor own = rounded_inputs(x, {Grid::kFp8});
  EXPECT_FLOAT_EQ(own[1][1].item<float>(), -1000);
}

TEST(RoundedInputs, OfATokenThatIsNotFiniteAreNotFinite) {
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
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};
INSTANTIATE_TEST_SUITE_P(Backends, RoundingLinears,
                         ::testing::Values(Backend::kNative, Backend::kReference));

TEST_P(RoundingLinears, LeaveTheInputsOfAdaptersAlone) {
  const at::Tensor x = random({5, 40});
  const Weight w = weight(random({33, 40}), InputRounding{Grid::kInt8, 0.3f});
  AdapterWeights adapter(1);
  adapter.set(0, {weight(random({4, 40}), {}), weight(random({33, 4}), {})}, 0.5f);
  LoraBatch lora;
  lora.add(0, 5, adapter, 1);
  const LoraWeight& pair = *adapter.find(0);
  const at::Tensor low = at::mm(at::mm(x, pair.a.unpacked().t()), pair.b.unpacked().t());
  expect_close(linear(x, {&w, 0}, lora), sum(x, w) + 0.5 * low);
}

TEST_P(RoundingLinears, OfOneProjectionMayDiffer) {
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

}  // namespace
}  // namespace valora::ops
