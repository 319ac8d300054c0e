#include "ops/weights/pack_contiguous.h"

#include <gtest/gtest.h>

namespace valora::ops {
namespace {

TEST(LayTogether, PacksPanelsAndKeepsValues) {
  const at::Tensor a = at::rand({3, 33}), b = at::rand({50, 7});
  Weight first(a, at::kBFloat16, at::kCPU), second(b, at::kBFloat16, at::kCPU);
  ASSERT_EQ(first.form(), WeightForm::kPanels);
  Weight* both[] = {&first, &second};
  pack_contiguous(both);
  EXPECT_TRUE(at::equal(first.unpacked(), a.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(second.unpacked(), b.to(at::kBFloat16)));
  const auto begin = [](const Weight& w) {
    return reinterpret_cast<uintptr_t>(w.data().const_data_ptr());
  };
  EXPECT_EQ(begin(first) % 64, 0u);
  EXPECT_EQ(begin(second), begin(first) + (first.bytes() + 63) / 64 * 64);
  EXPECT_EQ(first.out(), 3);
  EXPECT_EQ(second.in(), 7);
}

TEST(LayTogether, LeavesPlainWeightsAndRefusesMixedTypes) {
  const at::Tensor values = at::rand({4, 5});
  Weight plain = Weight::plain(values), packed(values, at::kFloat, at::kCPU),
         other(values, at::kBFloat16, at::kCPU);
  Weight* mixed[] = {&plain, &packed};
  pack_contiguous(mixed);
  EXPECT_EQ(plain.data().const_data_ptr(), values.const_data_ptr());
  EXPECT_TRUE(at::equal(packed.unpacked(), values));
  Weight* dtypes[] = {&packed, &other};
  EXPECT_THROW(pack_contiguous(dtypes), c10::Error);
  pack_contiguous({});
}

}  // namespace
}  // namespace valora::ops
