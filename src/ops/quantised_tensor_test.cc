#include "ops/quantised_tensor.h"

#include <gtest/gtest.h>

#include <limits>

namespace valora::ops {
namespace {

at::Tensor bytes(std::vector<int64_t> values, at::IntArrayRef sizes) {
  return at::tensor(values, at::kLong).to(at::kByte).view(sizes);
}

// Two outputs of five inputs in groups of two: the last group is shorter.
QuantisedTensor small() {
  return {bytes({0, 15, 8, 7, 9, 1, 2, 3, 4, 5}, {2, 5}), 4,
          at::tensor({0.5f, -1.f, 2.f, 1.f, 0.25f, 3.f}).view({2, 3}),
          bytes({8, 8, 8, 0, 4, 15}, {2, 3}), 2};
}

TEST(QuantisedTensor, DecodesByGroups) {
  const QuantisedTensor q = small();
  q.check();
  EXPECT_EQ(q.groups(), 3);
  EXPECT_FALSE(q.symmetric());
  const at::Tensor expected =
      at::tensor({-4.f, 3.5f, 0.f, 1.f, 2.f, 1.f, 2.f, -0.25f, 0.f, -30.f}).view({2, 5});
  EXPECT_TRUE(at::equal(q.decoded(), expected)) << q.decoded();
}

TEST(QuantisedTensor, IsSymmetricIfAllZerosAreTheMiddle) {
  QuantisedTensor q = small();
  q.zeros.fill_(8);
  EXPECT_TRUE(q.symmetric());
  q.bits = 8;
  EXPECT_FALSE(q.symmetric());
}

TEST(QuantisedTensor, RefusesWhatDoesNotFit) {
  const auto refused = [](auto change) {
    QuantisedTensor q = small();
    change(q);
    EXPECT_THROW(q.check(), c10::Error);
  };
  refused([](auto& q) { q.bits = 3; });
  refused([](auto& q) { q.group = 0; });
  refused([](auto& q) { q.group = 6; });
  refused([](auto& q) { q.group = 3; });
  refused([](auto& q) { q.values[0][0] = 16; });
  refused([](auto& q) { q.zeros[1][2] = 16; });
  refused([](auto& q) { q.values = q.values.t(); });
  refused([](auto& q) { q.zeros = q.zeros.to(at::kChar); });
  refused([](auto& q) { q.scales = q.scales.to(at::kDouble); });
  refused([](auto& q) { q.scales[0][1] = std::numeric_limits<float>::infinity(); });
  refused([](auto& q) { q.scales[1][0] = std::numeric_limits<float>::quiet_NaN(); });
}

}  // namespace
}  // namespace valora::ops
