#include "engine/adapters/value_range.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace valora {
namespace {

// Whether an F32 tensor with this value, among small ones, overflows.
bool overflows_with(float value, at::ScalarType dtype) {
  const float values[] = {0.5F, value, -0.25F};
  return overflows({DType::kF32, {3}, {reinterpret_cast<const uint8_t*>(values), sizeof values}},
                   dtype);
}

// The bounds are those at which rounding to nearest gives an infinity.
TEST(ValueRange, OnlyWhatRoundsToInfinityOverflows) {
  EXPECT_FALSE(overflows_with(3.4e38F, at::kFloat));
  EXPECT_FALSE(overflows_with(3.38e38F, at::kBFloat16));
  EXPECT_TRUE(overflows_with(-3.4e38F, at::kBFloat16));
  EXPECT_FALSE(overflows_with(65519.F, at::kHalf));
  EXPECT_TRUE(overflows_with(65520.F, at::kHalf));
  EXPECT_TRUE(overflows_with(-1e30F, at::kHalf));
}

TEST(ValueRange, BfloatsMayOverflowInHalfPrecision) {
  const at::BFloat16 values[] = {at::BFloat16(1.F), at::BFloat16(1e30F)};
  const TensorView view{
      DType::kBF16, {2}, {reinterpret_cast<const uint8_t*>(values), sizeof values}};
  EXPECT_TRUE(overflows(view, at::kHalf));
  EXPECT_FALSE(overflows(view, at::kBFloat16));
  EXPECT_FALSE(overflows(view, at::kFloat));
}

TEST(ValueRange, RefusalNamesTheModuleAndTheFactor) {
  const float small[] = {0.5F}, large[] = {1e38F};
  const auto view = [](const float* value) {
    return TensorView{DType::kF32, {1, 1}, {reinterpret_cast<const uint8_t*>(value), 4}};
  };
  adapters::Module module;
  module.name = "layers.0.q_proj";
  const adapters::ModuleTable modules({module}, {}, 1);
  adapters::AdapterSpec spec;
  spec.targets.push_back({0, 1, 1.F, view(small), view(large), {}});
  EXPECT_TRUE(check_range(spec, modules, at::kBFloat16).ok());
  const Status refused = check_range(spec, modules, at::kHalf);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnprocessable);
  EXPECT_NE(refused.error().message.find("lora_B of layers.0.q_proj has values up to 1e+38"),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace valora
