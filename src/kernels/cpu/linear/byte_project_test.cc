// Projections with inputs rounded to 8 bits, on every instruction set, against their definition in
// double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "kernels/cpu/linear/launch_memory.h"
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
      for (const auto& [float_scales, zeros, minimums] : {std::tuple(false, false, false),
                                                          {true, false, false},
                                                          {true, true, false},
                                                          {false, false, true}}) {
        c.bits = bits;
        c.group = group;
        c.input_block = block;
        c.zeros = zeros;
        c.minimums = minimums;
        c.float_scales = float_scales;
        expect_projection<bf16>(c);
        expect_projection<float>(c);
        if (HasFatalFailure()) return;
      }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, ByteProjections, each_isa(), name_of_isa);

TEST_P(ByteProjections, AnySizeMatchesReference) {
  for (const int64_t k : {1, 9, 45, 96})
    for (const int64_t m : {1, 3, 6, 13, 26})
      expect_all({.m = m, .k = k, .outs = {k + 2}, .x_gap = 3, .y_gap = 2, .bias = true}, 32, 32);
}

// Input scales that cover a group, part of a group, several groups, or a whole row.
TEST_P(ByteProjections, AnyGroupAndBlockMatchReference) {
  constexpr std::pair<int64_t, int64_t> kGroupsAndBlocks[] = {{8, 8},    {24, 24},  {64, 32},
                                                              {128, 64}, {32, 128}, {24, 120},
                                                              {64, 200}, {200, 40}, {200, 200}};
  for (const auto& [group, block] : kGroupsAndBlocks)
    for (const int64_t m : {1, 4, 27})
      expect_all({.m = m, .k = 200, .outs = {33}, .unrounded = true}, group, block);
}

// Rounds as compressed-tensors does: one scale per row, fixed or from the row's largest value. Some
// inputs exceed the range of the fixed scale.
TEST_P(ByteProjections, CheckpointRoundingMatchesReference) {
  for (const float scale : {0.f, 0.004f})
    for (const int64_t k : {45, 600, 1211})
      for (const int64_t m : {1, 7, 30})
        for (const int64_t group : {int64_t{32}, k}) {
          Case c{.m = m, .k = k, .outs = {33}, .x_gap = 2, .bias = true};
          c.row_rounding = RowRounding{scale};
          expect_all(c, group, k);
        }
}

TEST_P(ByteProjections, ManyInputsAndRowsMatchReference) {
  expect_all({.m = 30, .k = 1211, .outs = {70}, .bias = true}, 1211, 1211);
  for (const int64_t group : {32, 128})
    expect_all({.m = 30, .k = 2000, .outs = {70}, .bias = true}, group, 128);
  expect_all({.m = 130, .k = 40, .outs = {130}, .bias = true}, 32, 32);
}

TEST_P(ByteProjections, AdaptersUseUnroundedInputs) {
  for (const int64_t m : {1, 5, 31})
    expect_all({.m = m,
                .k = 50,
                .outs = {96, 17, 33},
                .bias = true,
                .uses = {{0, m, {8, 0, 16}, 1}, {m / 2, m, {0, 32, 5}, -0.5}}},
               32, 32);
}

TEST_P(ByteProjections, ThreadsEqualSerial) {
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

TEST(LaunchMemoryTest, ReusesTheSmallestBlockThatFits) {
  std::thread([] {  // which has nothing yet
    const uint8_t *small = nullptr, *large = nullptr;
    {
      const LaunchMemory a(100), b(200);
      small = a.data(), large = b.data();
      EXPECT_EQ(LaunchMemory::kept(), 0);
    }
    EXPECT_EQ(LaunchMemory::kept(), 300);
    const LaunchMemory fits(90), other(90);
    EXPECT_EQ(fits.data(), small);
    EXPECT_EQ(other.data(), large);
    EXPECT_EQ(LaunchMemory::kept(), 0);
  })
      .join();
}

TEST(LaunchMemoryTest, KeepsTheLargestWithinTheBound) {
  std::thread([] {
    constexpr int64_t kMost = LaunchMemory::kMostKept;
    {
      const LaunchMemory huge(kMost + 1);
    }
    EXPECT_EQ(LaunchMemory::kept(), 0);
    {
      const LaunchMemory a(kMost / 2), b(kMost / 4), c(kMost / 2);
    }
    EXPECT_EQ(LaunchMemory::kept(), kMost);
  }).join();
}

// 16 outputs whose integers are all equal, with scales of 1.
struct EqualWeights {
  IntegerPanels w;
  std::vector<uint8_t> bytes;

  EqualWeights(int bits, int64_t k, int64_t group, uint8_t value, uint8_t zero)
      : w(integer_layout(16, k, bits, group, false, true)), bytes(integer_bytes(w)) {
    const int64_t groups = 16 * ((k + group - 1) / group);
    const std::vector<uint8_t> values(16 * k, value), zeros(groups, zero);
    const std::vector<float> scales(groups, 1);
    pack_integers(w, values.data(), {scales.data(), zeros.data()}, bytes.data(), serial_for);
    w.data = bytes.data();
  }
  std::vector<float> times(const std::vector<float>& x, const float* largest = nullptr) const {
    std::vector<float> y(16);
    const Slice<float> slice{{nullptr, 16, w.k}, nullptr, y.data(), nullptr, 16, -1, &w};
    project<float>(x.data(), 1, w.k, {&slice, 1}, {}, std::nullopt, serial_for, nullptr, largest);
    return y;
  }
};

// The largest inputs and weights, of equal sign: no partial sum may overflow.
TEST_P(ByteProjections, LargestIntegersDoNotOverflow) {
  constexpr int64_t kInputs = 4096;
  for (const int bits : {4, 8}) {
    const auto largest = static_cast<uint8_t>((1 << bits) - 1);
    for (const int64_t group : {int64_t{32}, kInputs})
      for (const bool row : {false, true}) {
        EqualWeights weights(bits, kInputs, group, largest, 0);
        weights.w.input_block = row ? kInputs : group;
        if (row) weights.w.row_rounding = RowRounding{1};
        const float x = row ? -128 : -127;
        for (const float sum : weights.times(std::vector(kInputs, x)))
          EXPECT_FLOAT_EQ(sum, x * largest * kInputs) << bits << " row " << row;
      }
  }
}

// Inputs of one sign for some of an output's partial sums, and of the other for the rest: those
// that start at what the zero-point subtracts have the least room then.
TEST_P(ByteProjections, StartedSumsDoNotOverflow) {
  constexpr int64_t kInputs = 64, kGroup = 32;
  for (const int bits : {4, 8})
    for (const int value : {0, (1 << bits) - 1})
      for (const float x_of_first : {127.f, -127.f})
        for (const int64_t period : {2, 4, 8}) {
          IntegerPanels w = integer_layout(16, kInputs, bits, kGroup, false, false);
          w.input_block = kGroup;
          std::vector<uint8_t> values(16 * kInputs), bytes(integer_bytes(w));
          std::vector<float> scales(16 * kInputs / kGroup, 1), x(kInputs), y(16);
          float expected = 0;
          for (int64_t i = 0; i < kInputs; ++i) {
            const bool first = i % period < period / 2;
            x[i] = first ? x_of_first : -x_of_first;
            for (int64_t o = 0; o < 16; ++o)
              values[o * kInputs + i] = static_cast<uint8_t>(first ? (1 << bits) - 1 : value);
            expected += x[i] * static_cast<float>(values[i] - (1 << (bits - 1)));
          }
          pack_integers(w, values.data(), {scales.data()}, bytes.data(), serial_for);
          w.data = bytes.data();
          const Slice<float> slice{{nullptr, 16, kInputs}, nullptr, y.data(), nullptr, 16, -1, &w};
          project<float>(x.data(), 1, kInputs, {&slice, 1}, {}, std::nullopt, serial_for);
          for (const float sum : y)
            EXPECT_FLOAT_EQ(sum, expected) << bits << " " << value << " " << period;
        }
}

TEST_P(ByteProjections, PartialRowUsesLargestOfWholeRow) {
  EqualWeights weights(8, 40, 40, 129, 128);
  weights.w.input_block = 40;
  weights.w.row_rounding = RowRounding{};
  const std::vector<float> x(40, 1);
  const float whole = 51;  // gives a scale of 0.4
  for (const float sum : weights.times(x, &whole)) EXPECT_FLOAT_EQ(sum, 40 * 2 * 0.4f);
  for (const float sum : weights.times(x)) EXPECT_FLOAT_EQ(sum, 40 * 127 / 127.5f);
}

TEST_P(ByteProjections, NonFiniteRowsGiveNaNOrSaturate) {
  for (const float scale : {0.f, 1.f}) {
    EqualWeights weights(8, 40, 40, 129, 128);
    weights.w.input_block = 40;
    weights.w.row_rounding = RowRounding{scale};
    std::vector<float> x(40, 1);
    x[3] = std::numeric_limits<float>::quiet_NaN();
    for (const float sum : weights.times(x)) EXPECT_TRUE(std::isnan(sum));
    x[3] = INFINITY;
    for (const float sum : weights.times(x)) {
      if (scale == 0)
        EXPECT_TRUE(std::isnan(sum));
      else
        EXPECT_EQ(sum, 39 + 127);
    }
  }
}

class ByteRowsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kInputs = 21, kBlock = 8;
  void round(const std::vector<float>& x) {
    values_.assign(form_.row_bytes(), 77);
    round_rows_to_bytes(x.data(), 1, kInputs, form_, {values_.data(), scales_, sums_, starts_});
  }
  int value(int64_t input) const { return static_cast<int8_t>(values_[input]); }

  ByteForm form_{kInputs, kBlock, kBlock, 8, 1, -128};
  std::vector<uint8_t> values_;
  float scales_[3], sums_[3];
  int32_t starts_[3];
};

TEST_F(ByteRowsTest, KeepLargestValueAndRoundOthers) {
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
    EXPECT_EQ(starts_[b], -128 * sum);
  }
  for (int64_t i = kInputs; i < 24; ++i) EXPECT_EQ(value(i), 0) << "padding";
}

TEST_F(ByteRowsTest, ZerosAndTinyValuesBecomeZero) {
  std::vector<float> x(kInputs, 0);
  x[9] = std::numeric_limits<float>::denorm_min();
  round(x);
  for (int64_t i = 0; i < kInputs; ++i) EXPECT_EQ(value(i), 0);
  for (const float scale : scales_) EXPECT_EQ(scale, 0);
}

TEST_F(ByteRowsTest, NonFiniteBlockHasNonFiniteScale) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -INFINITY}) {
    std::vector<float> x(kInputs, 1);
    x[10] = bad;
    round(x);
    EXPECT_TRUE(std::isfinite(scales_[0]));
    EXPECT_FALSE(std::isfinite(scales_[1]));
    EXPECT_TRUE(std::isnan(scales_[1] * 0));
  }
}

TEST(InputBlocks, DivideGroup) {
  EXPECT_EQ(input_block(32, 896), 128);
  EXPECT_EQ(input_block(48, 896), 96);
  EXPECT_EQ(input_block(128, 896), 128);
  EXPECT_EQ(input_block(256, 896), 128);
  EXPECT_EQ(input_block(296, 896), 8);
  EXPECT_EQ(input_block(896, 896), 128);
  EXPECT_EQ(input_block(100, 100), 104);
}

}  // namespace
}  // namespace valora::kernels
