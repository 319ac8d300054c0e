#include "generator/quantise/rounding.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "generator/quantise/packed_linear.h"
#include "models/quantised/unpack.h"

namespace valora::generator {
namespace {

at::Tensor values(int64_t rows, int64_t columns, uint64_t seed) {
  return at::randn({rows, columns}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

// Error of the outputs for inputs with these moments: the trace of E M Eᵀ.
double output_error(const at::Tensor& w, const ops::QuantisedTensor& rounded,
                    const at::Tensor& moments) {
  const at::Tensor error = rounded.decoded() - w;
  return (at::mm(error, moments) * error).sum().item<double>();
}

TEST(Rounding, NearestIsWithinHalfAStepOrClamped) {
  const at::Tensor w = values(12, 64, 1);
  for (const int bits : {4, 8}) {
    const ops::QuantisedTensor rounded = round_to_nearest(w, {.bits = bits, .group = 16});
    rounded.check();
    EXPECT_TRUE(rounded.symmetric());
    EXPECT_TRUE(at::equal(rounded.scales, rounded.scales.to(at::kBFloat16).to(at::kFloat)));
    const at::Tensor steps = rounded.scales.abs().repeat_interleave(16, 1);
    const at::Tensor inside = rounded.values.gt(0).logical_and(rounded.values.lt((1 << bits) - 1));
    const at::Tensor error = (rounded.decoded() - w).abs();
    EXPECT_TRUE(error.le(steps * 0.5001).logical_or(inside.logical_not()).all().item<bool>());
    EXPECT_LT(error.square().sum().item<double>(),
              (bits == 4 ? 2e-2 : 1e-4) * w.square().sum().item<double>());
  }
}

// Correlated inputs can compensate for each other's errors.
TEST(Rounding, ByMomentsChangesOutputsLess) {
  const at::Tensor mixing = values(96, 24, 3), x = at::mm(values(500, 24, 2), mixing.t());
  const at::Tensor moments = at::mm(x.t(), x), w = values(20, 96, 4);
  for (const int64_t group : {16, 32, 96}) {
    const Grid grid{.bits = 4, .group = group};
    const double nearest = output_error(w, round_to_nearest(w, grid), moments);
    const ops::QuantisedTensor fitted = round_by_moments(w, moments, grid);
    fitted.check();
    EXPECT_LT(output_error(w, fitted, moments), 0.3 * nearest) << group;
  }
}

TEST(Rounding, EqualsNearestWithoutInputs) {
  const at::Tensor w = values(8, 64, 5);
  const Grid grid{.bits = 8, .group = 32};
  EXPECT_TRUE(at::equal(round_by_moments(w, at::zeros({64, 64}), grid).values,
                        round_to_nearest(w, grid).values));
}

TEST(Rounding, RefusesNonFiniteWeights) {
  at::Tensor w = values(2, 32, 6);
  w[1][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(round_to_nearest(w, {.group = 32}), c10::Error);
}

TEST(PackedLinear, UnpacksToTheSameValues) {
  const ops::QuantisedTensor rounded = round_to_nearest(values(3, 48, 7), {.bits = 4, .group = 16});
  const auto parts = packed_linear("a.b", rounded, QuantiseScheme::kW4A16, DType::kBF16);
  const auto part = [&](const std::string& name) -> const OwnedTensor& {
    return *std::ranges::find(parts, "a.b." + name, &OwnedTensor::name);
  };
  const OwnedTensor& words = part("weight_packed");
  EXPECT_EQ(words.shape, (std::vector<int64_t>{3, 6}));
  const at::Tensor stored =
      at::from_blob(const_cast<uint8_t*>(words.bytes.data()), {3, 6}, at::kInt);
  EXPECT_TRUE(at::equal(models::unpack_along_columns(stored, 4, 48), rounded.values));
  EXPECT_EQ(part("weight_shape").dtype, DType::kI64);
  EXPECT_EQ(part("weight_scale").shape, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(part("weight_scale").bytes.size(), 18u);
}

}  // namespace
}  // namespace valora::generator
