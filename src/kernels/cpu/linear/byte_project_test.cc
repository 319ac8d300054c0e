// Projections whose inputs are rounded to 8 bits, on every instruction set, against their
// definition in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/product/byte_product.h"
#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class ByteProjections : public OnEachIsa {
 protected:
  static void expect_all(Case c, int64_t group, int64_t block) {
    for (const int bits : {4, 8})
      for (const auto& [zeros, minimums] :
           {std::pair(false, false), {true, false}, {false, true}}) {
        c.bits = bits;
        c.group = group;
        c.input_block = block;
        c.zeros = zeros;
        c.minimums = minimums;
        c.float_scales = zeros;
        expect_projection<bf16>(c);
        expect_projection<float>(c);
        if (HasFatalFailure()) return;
      }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, ByteProjections, each_isa(), name_of_isa);

TEST_P(ByteProjections, OfAnySize) {
  for (const int64_t k : {1, 9, 45, 96})
    for (const int64_t m : {1, 3, 6, 13, 26})
      expect_all({.m = m, .k = k, .outs = {k + 2}, .x_gap = 3, .y_gap = 2, .bias = true}, 32, 32);
}

// Scales of inputs for a group, a part of one, several groups, and a whole row.
TEST_P(ByteProjections, OfAnyGroupAndBlock) {
  constexpr std::pair<int64_t, int64_t> kGroupsAndBlocks[] = {
      {8, 8}, {24, 24}, {64, 32}, {128, 64}, {32, 128}, {64, 200}, {200, 40}, {200, 200}};
  for (const auto& [group, block] : kGroupsAndBlocks)
    for (const int64_t m : {1, 4, 27})
      expect_all({.m = m, .k = 200, .outs = {33}, .unrounded = true}, group, block);
}

TEST_P(ByteProjections, OfManyInputsAndRows) {
  expect_all({.m = 30, .k = 1211, .outs = {70}, .bias = true}, 1211, 1211);
  expect_all({.m = 130, .k = 40, .outs = {130}, .bias = true}, 32, 32);
}

TEST_P(ByteProjections, OfSeveralSlicesWithAdaptersThatTakeUnroundedInputs) {
  for (const int64_t m : {1, 5, 31})
    expect_all({.m = m,
                .k = 50,
                .outs = {96, 17, 33},
                .bias = true,
                .uses = {{0, m, {8, 0, 16}, 1}, {m / 2, m, {0, 32, 5}, -0.5}}},
               32, 32);
}

TEST_P(ByteProjections, SharedByThreadsEqualThoseOfOne) {
  Case c{.m = 130,
         .k = 300,
         .outs = {130, 70},
         .uses = {{0, 70, {16, 16}, 1}},
         .bits = 4,
         .group = 32,
         .zeros = true,
         .input_block = 32};
  for (int i = 0; i < 3; ++i) {
    expect_projection<bf16>(c, two_threads);
    if (HasFatalFailure()) return;
  }
}

// The largest values of both, of equal sign: no partial sum may overflow.
TEST_P(ByteProjections, OfTheLargestIntegers) {
  constexpr int64_t kInputs = 4096;
  for (const int bits : {4, 8}) {
    const auto largest = static_cast<uint8_t>((1 << bits) - 1);
    for (const int64_t group : {int64_t{32}, kInputs}) {
      IntegerPanels w = integer_layout(16, kInputs, bits, group, false, true);
      w.input_block = group;
      const int64_t groups = 16 * kInputs / group;
      const std::vector<uint8_t> values(16 * kInputs, largest), zeros(groups, 0);
      const std::vector<float> scales(groups, 1), x(kInputs, -127);
      std::vector<uint8_t> bytes(integer_bytes(w));
      pack_integers(w, values.data(), {scales.data(), zeros.data()}, bytes.data(), serial_for);
      w.data = bytes.data();
      std::vector<float> y(16);
      const Slice<float> slice{{nullptr, 16, kInputs}, nullptr, y.data(), nullptr, 16, -1, &w};
      project<float>(x.data(), 1, kInputs, {&slice, 1}, {}, std::nullopt, serial_for);
      for (const float sum : y) EXPECT_FLOAT_EQ(sum, -127.f * largest * kInputs) << bits;
    }
  }
}

class ByteRowsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kInputs = 21, kBlock = 8;
  void round(const std::vector<float>& x) {
    values_.assign(form_.row_bytes(), 77);
    round_rows_to_bytes(x.data(), 1, kInputs, form_, values_.data(), scales_, sums_);
  }
  int value(int64_t input) const { return static_cast<int8_t>(values_[input]); }

  ByteForm form_{kInputs, kBlock, kBlock, 8, 1};
  std::vector<uint8_t> values_;
  float scales_[3], sums_[3];
};

TEST_F(ByteRowsTest, KeepABlocksLargestValueAndRoundTheOthersToTheNearest) {
  std::vector<float> x(kInputs);
  for (int64_t i = 0; i < kInputs; ++i)
    x[i] = std::sin(static_cast<float>(3 * i)) * (i < 8 ? 1 : 9);
  round(x);
  for (int64_t i = 0; i < kInputs; ++i) {
    const float scale = scales_[i / kBlock];
    EXPECT_NEAR(x[i], static_cast<float>(value(i)) * scale, 0.5001f * scale) << i;
  }
  for (int64_t b = 0; b < 3; ++b) {
    int most = 0, sum = 0;
    for (int64_t i = b * kBlock; i < (b + 1) * kBlock; ++i) {
      most = std::max(most, std::abs(value(i)));
      sum += value(i);
    }
    EXPECT_EQ(most, 127);
    EXPECT_EQ(sums_[b], static_cast<float>(sum));
  }
  for (int64_t i = kInputs; i < 24; ++i) EXPECT_EQ(value(i), 0) << "padding";
}

TEST_F(ByteRowsTest, OfZerosAndOfTheSmallestNumbersAreZero) {
  std::vector<float> x(kInputs, 0);
  x[9] = std::numeric_limits<float>::denorm_min();
  round(x);
  for (int64_t i = 0; i < kInputs; ++i) EXPECT_EQ(value(i), 0);
  for (const float scale : scales_) EXPECT_EQ(scale, 0);
}

TEST_F(ByteRowsTest, HaveNoFiniteScaleIfABlockIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -INFINITY}) {
    std::vector<float> x(kInputs, 1);
    x[10] = bad;
    round(x);
    EXPECT_TRUE(std::isfinite(scales_[0]));
    EXPECT_FALSE(std::isfinite(scales_[1]));
    EXPECT_TRUE(std::isnan(scales_[1] * 0));
  }
}

TEST(InputBlocks, AreAGroupOrAPartOfIt) {
  EXPECT_EQ(input_block(32, 896), 32);
  EXPECT_EQ(input_block(128, 896), 128);
  EXPECT_EQ(input_block(256, 896), 128);
  EXPECT_EQ(input_block(296, 896), 8);
  EXPECT_EQ(input_block(896, 896), 128);
  EXPECT_EQ(input_block(100, 100), 104);
}

}  // namespace
}  // namespace valora::kernels
