// Projections with integer weights, on every instruction set, against their definition in double
// precision.
#include <gtest/gtest.h>

#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class IntegerProjections : public OnEachIsa {
 protected:
  // Checks all encodings with this group size.
  static void expect_all(Case c, int64_t group) {
    for (const int bits : {4, 8})
      for (const auto& [zeros, minimums] : {std::pair(false, false), {true, false}, {false, true}})
        for (const bool float_scales : {false, true}) {
          c.bits = bits;
          c.group = group;
          c.zeros = zeros;
          c.minimums = minimums;
          c.float_scales = float_scales;
          expect_projection<bf16>(c);
          expect_projection<float>(c);
          if (HasFatalFailure()) return;
        }
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, IntegerProjections, each_isa(), name_of_isa);

TEST_P(IntegerProjections, AnySizeMatchesReference) {
  for (const int64_t k : {1, 9, 45, 96})
    for (const int64_t m : {1, 3, 6, 11, 26, 50})
      expect_all({.m = m, .k = k, .outs = {k + 2}, .x_gap = 3, .y_gap = 2, .bias = true}, 32);
}

TEST_P(IntegerProjections, AnyGroupMatchesReference) {
  for (const int64_t group : {8, 24, 64, 128, 200})
    for (const int64_t m : {1, 4, 27, 49})
      expect_all({.m = m, .k = 200, .outs = {33}, .unrounded = true}, group);
}

// Enough inputs to be decoded in several parts, which divide groups.
TEST_P(IntegerProjections, ManyInputsAndRowsMatchReference) {
  for (const int64_t group : {24, 1211})
    expect_all({.m = 50, .k = 1211, .outs = {70}, .bias = true}, group);
  expect_all({.m = 130, .k = 40, .outs = {130}, .bias = true}, 32);
}

TEST_P(IntegerProjections, SlicesWithAdaptersMatchReference) {
  for (const int64_t m : {1, 5, 31, 53})
    expect_all({.m = m,
                .k = 50,
                .outs = {96, 17, 33},
                .bias = true,
                .uses = {{0, m, {8, 0, 16}, 1}, {m / 2, m, {0, 32, 5}, -0.5}}},
               32);
}

TEST_P(IntegerProjections, GatedMatchesReference) {
  for (const int64_t m : {1, 29})
    for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh})
      expect_all({.m = m,
                  .k = 50,
                  .outs = {45, 45},
                  .y_gap = 2,
                  .gate = gate,
                  .uses = {{0, m, {8, 16}, 1}}},
                 32);
}

TEST_P(IntegerProjections, ThreadsEqualSerial) {
  Case c{.m = 130,
         .k = 300,
         .outs = {130, 70},
         .uses = {{0, 70, {16, 16}, 1}},
         .bits = 4,
         .group = 32,
         .zeros = true};
  for (int i = 0; i < 3; ++i) {
    expect_projection<bf16>(c, two_threads);
    expect_projection<float>(c, two_threads);
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerPanels, RoundTrip) {
  for (const int bits : {4, 8})
    for (const auto& [zeros, minimums] : {std::pair(false, false), {true, false}, {false, true}})
      for (const int64_t group : {8, 32, 77}) {
        const Case c{.k = 77,
                     .bits = bits,
                     .group = group,
                     .zeros = zeros,
                     .float_scales = zeros,
                     .minimums = minimums};
        const IntegerMatrix m(c, 37, 5);
        std::vector<float> w(37 * 77);
        decode_integers(m.panels, w.data(), serial_for);
        for (int64_t i = 0; i < 37 * 77; ++i) {
          const int64_t part = i / 77 * m.groups + i % 77 / m.panels.group;
          // The product is exact, so it does not matter whether it is rounded separately.
          ASSERT_EQ(w[i], static_cast<float>(m.values[i] - m.zeros[part]) * m.scales[part] +
                              m.minimums[part])
              << bits << " bits, group " << group << ", weight " << i;
        }
      }
}

TEST(IntegerPanels, HavePredictedSize) {
  // 4.5 bits per weight: 4, plus a bf16 scale for every 32 weights.
  EXPECT_EQ(integer_bytes(integer_layout(64, 896, 4, 32, false, false)), 64 * 896 * 9 / 16);
  EXPECT_EQ(integer_bytes(integer_layout(64, 896, 4, 32, false, true)), 64 * 896 / 2 + 64 * 28 * 3);
  EXPECT_EQ(integer_bytes(integer_layout(64, 1024, 8, 128, false, false)), 64 * 1024 + 64 * 8 * 2);
  EXPECT_EQ(integer_bytes(integer_layout(64, 896, 4, 32, true, false, true)),
            64 * 896 / 2 + 64 * 28 * 8);
  EXPECT_EQ(integer_bytes(integer_layout(17, 9, 8, 9, true, true)), 2 * (256 + 64 + 16 + 48))
      << "padded to panels, chunks and lines";
  EXPECT_TRUE(is_integer_group(24, 100));
  EXPECT_TRUE(is_integer_group(100, 100));
  EXPECT_FALSE(is_integer_group(20, 100));
  EXPECT_FALSE(is_integer_group(0, 100));
}

}  // namespace
}  // namespace valora::kernels
