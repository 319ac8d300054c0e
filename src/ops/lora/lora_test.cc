#include "ops/lora/lora.h"

#include <gtest/gtest.h>

namespace valora::ops {
namespace {

Weight panels(int64_t out, int64_t in) {
  return Weight(at::rand({out, in}), at::kBFloat16, at::kCPU);
}

// An adapter of rank 4 on these of 100 modules, each [6, 10].
AdapterWeights adapter(std::initializer_list<int> modules) {
  AdapterWeights weights(100);
  for (const int module : modules) weights.set(module, {panels(4, 10), panels(6, 4)}, 0.5f);
  return weights;
}

TEST(AdapterWeights, DescribeTheirModules) {
  AdapterWeights weights = adapter({3, 70});
  weights.pack_contiguous();
  EXPECT_EQ(weights.find(4), nullptr);
  ASSERT_NE(weights.find(70), nullptr);
  const kernels::LoraModule& module = *weights.module(70);
  EXPECT_EQ(module.a.data, weights.find(70)->a.data().const_data_ptr());
  EXPECT_EQ(module.b.data, weights.find(70)->b.data().const_data_ptr());
  EXPECT_EQ(module.rank, 4);
  EXPECT_EQ(module.in, 10);
  EXPECT_EQ(module.out, 6);
  EXPECT_EQ(module.scale, 0.5f);
  EXPECT_EQ(weights.module(4), nullptr);
  EXPECT_FALSE(weights.touches(4));
}

TEST(AdapterWeights, RefusesMismatchedWeights) {
  AdapterWeights weights = adapter({3});
  EXPECT_THROW(weights.set(100, {panels(4, 10), panels(6, 4)}, 1), c10::Error);
  EXPECT_THROW(weights.set(5, {panels(4, 10), panels(6, 3)}, 1), c10::Error);
  EXPECT_THROW(
      weights.set(5, {Weight::plain(at::rand({4, 10})), Weight::plain(at::rand({6, 4}))}, 1),
      c10::Error);
}

TEST(LoraBatch, TracksTouchedModules) {
  const AdapterWeights a = adapter({3, 70}), b = adapter({99});
  LoraBatch lora;
  EXPECT_FALSE(lora.touches(3));
  lora.add(0, 2, a, 1);
  EXPECT_TRUE(lora.touches(70));
  EXPECT_FALSE(lora.touches(99));
  lora.add(2, 5, b, 1);
  for (const int module : {3, 70, 99}) EXPECT_TRUE(lora.touches(module)) << module;
  for (const int module : {-1, 0, 4, 69, 71}) EXPECT_FALSE(lora.touches(module)) << module;
  EXPECT_EQ(lora.token_end(), 5);
  EXPECT_EQ(kernels::touched_module(lora.segments()[1], 3), nullptr);
  EXPECT_EQ(kernels::touched_module(lora.segments()[1], 99), b.module(99));
}

TEST(LoraBatch, AlsoTouchAddsModules) {
  const AdapterWeights a = adapter({3});
  LoraBatch lora;
  lora.add(0, 2, a, 1);
  lora.also_touch(std::vector<uint64_t>{1 << 5, 1 << 2});
  for (const int module : {3, 5, 66}) EXPECT_TRUE(lora.touches(module)) << module;
  EXPECT_FALSE(lora.touches(4));
  EXPECT_EQ(kernels::touched_module(lora.segments()[0], 5), nullptr) << "the adapter does not";
}

TEST(LoraBatch, OfTokensFollowsTheirOrder) {
  const AdapterWeights a = adapter({3}), b = adapter({3, 70});
  LoraBatch lora;
  lora.add(0, 4, a, 1);
  lora.add(2, 8, b, 2);
  lora.add(8, 9, a, 1);
  const LoraBatch some = lora.of_tokens(std::vector<int64_t>{1, 3, 5, 6, 9});
  ASSERT_EQ(some.segments().size(), 2u);
  EXPECT_EQ(some.segments()[0].token_begin, 0);
  EXPECT_EQ(some.segments()[0].token_end, 2);
  EXPECT_EQ(&some.adapter(1), &b);
  EXPECT_EQ(some.segments()[1].token_begin, 1);
  EXPECT_EQ(some.segments()[1].token_end, 4);
  EXPECT_EQ(some.segments()[1].coefficient, 2);
  EXPECT_TRUE(lora.of_tokens(std::vector<int64_t>{9, 10}).segments().empty());
}

TEST(LoraBatch, PartsCountTheModulesOfTheWhole) {
  const AdapterWeights a = adapter({3}), b = adapter({70});
  LoraBatch lora;
  lora.add(0, 4, a, 1);
  LoraBatch part = lora.part(1, 2);
  EXPECT_TRUE(part.touches(3));
  part.add(0, 1, b, 1);
  EXPECT_TRUE(part.touches(70));
  EXPECT_TRUE(part.touches(3));
  EXPECT_FALSE(lora.touches(70)) << "of the part alone";
}

TEST(LoraBatch, ExtendsPrecedingSegment) {
  const AdapterWeights a = adapter({3}), b = adapter({3});
  LoraBatch lora;
  lora.add(0, 2, a, 1);
  lora.add(0, 2, b, 1);
  lora.add(2, 3, a, 1);
  lora.add(3, 4, a, 2);
  lora.add(5, 6, a, 2);
  ASSERT_EQ(lora.segments().size(), 4u);
  EXPECT_EQ(lora.segments()[0].token_end, 3);
  EXPECT_EQ(&lora.adapter(1), &b);
}

TEST(LoraBatch, RefusesInvalidRangesAndAdapters) {
  const AdapterWeights a = adapter({3}), other_model(7);
  AdapterWeights plain(100);
  plain.set(3, {Weight::plain(at::rand({4, 10})), Weight::plain(at::rand({6, 4}))}, 1);
  LoraBatch lora;
  lora.add(0, 2, a, 1);
  EXPECT_THROW(lora.add(3, 2, a, 1), c10::Error);
  EXPECT_THROW(lora.add(-1, 2, a, 1), c10::Error);
  EXPECT_THROW(lora.add(2, 3, other_model, 1), c10::Error);
  EXPECT_THROW(lora.add(2, 3, plain, 1), c10::Error);
}

}  // namespace
}  // namespace valora::ops
