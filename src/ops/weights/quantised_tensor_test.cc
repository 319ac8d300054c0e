#include "ops/weights/quantised_tensor.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <limits>

namespace valora::ops {
namespace {

at::Tensor bytes(std::vector<int64_t> values, at::IntArrayRef sizes) {
  return at::tensor(values, at::kLong).to(at::kByte).view(sizes);
}

// Two outputs of five inputs in groups of two, the last of which is shorter.
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

TEST(QuantisedTensor, DecodesWithMinimums) {
  QuantisedTensor q = small();
  q.zeros = at::Tensor();
  q.minimums = at::tensor({0.5f, 1.f, -2.f, 0.f, 4.f, 8.f}).view({2, 3});
  q.check();
  const at::Tensor expected =
      at::tensor({0.5f, 8.f, -7.f, -6.f, 16.f, 1.f, 2.f, 4.75f, 5.f, 23.f}).view({2, 5});
  EXPECT_TRUE(at::equal(q.decoded(), expected)) << q.decoded();
  EXPECT_TRUE(at::equal(q.part({1, 2}, {1, 4}).decoded(), expected.slice(0, 1, 2).slice(1, 1, 4)));
  const at::Tensor order = at::tensor({1, 0}, at::kLong);
  EXPECT_TRUE(at::equal(q.in_rows(order).decoded(), expected.flip(0)));
  q.minimums[0][0] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(q.check(), c10::Error);
}

TEST(QuantisedTensor, SymmetricIfAllZerosAreMiddle) {
  QuantisedTensor q = small();
  q.zeros.fill_(8);
  EXPECT_TRUE(q.symmetric());
  q.bits = 8;
  EXPECT_FALSE(q.symmetric());
}

TEST(QuantisedTensor, PartKeepsValues) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  for (const int64_t group : {1, 2, 4, 6, 11, 12}) {
    const int64_t groups = (12 + group - 1) / group;
    const QuantisedTensor whole{at::randint(0, 16, {3, 12}, generator, at::kByte), 4,
                                at::rand({3, groups}, generator),
                                at::randint(0, 16, {3, groups}, generator, at::kByte), group};
    for (int64_t first = 0; first < 12; ++first)
      for (int64_t last = first + 1; last <= 12; ++last) {
        const QuantisedTensor part = whole.part({1, 3}, {first, last});
        part.check();
        EXPECT_TRUE(at::equal(part.decoded(), whole.decoded().slice(0, 1, 3).slice(1, first, last)))
            << "groups of " << group << ", inputs " << first << " to " << last;
      }
  }
}

TEST(QuantisedTensor, PartsKeepLargestPossibleGroups) {
  const QuantisedTensor whole{at::zeros({1, 896}, at::kByte), 8, at::ones({1, 7}),
                              at::zeros({1, 7}, at::kByte), 128};
  EXPECT_EQ(whole.part({0, 1}, {0, 448}).group, 128);
  EXPECT_EQ(whole.part({0, 1}, {448, 896}).group, 64);
  EXPECT_EQ(whole.part({0, 1}, {384, 896}).group, 128);
  EXPECT_EQ(whole.part({0, 1}, {130, 140}).group, 10);
}

TEST(QuantisedTensor, RefusesMismatchedTensors) {
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
