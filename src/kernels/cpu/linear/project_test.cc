// Projections with every instruction set of this CPU, against plain double-precision loops. Every
// buffer ends at a guard page.
#include "kernels/cpu/linear/project.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class Projections : public testing_support::OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, Projections, testing_support::each_isa(),
                         testing_support::name_of_isa);

// Both dtypes, rounded and unrounded results, with and without a bias.
void expect_linear_in_all_forms(int64_t m, int64_t n, int64_t k, int64_t x_gap = 0,
                                int64_t y_gap = 0) {
  for (const bool bias : {false, true})
    for (const bool unrounded : {false, true}) {
      Case c{.m = m,
             .k = k,
             .outs = {n},
             .x_gap = x_gap,
             .y_gap = y_gap,
             .bias = bias,
             .unrounded = unrounded};
      expect_projection<bf16>(c);
      expect_projection<float>(c);
    }
}

TEST_P(Projections, EqualTheReferenceAtOddSizes) {
  for (int64_t m : {1, 3, 15, 16, 17, 33, 129})
    for (int64_t n : {1, 3, 15, 16, 17, 33, 129})
      for (int64_t k : {1, 3, 15, 16, 17, 33, 129}) {
        const Case c{
            .m = m, .k = k, .outs = {n}, .bias = (m + n + k) % 2 == 1, .unrounded = m % 2 == 1};
        expect_projection<bf16>(c);
        expect_projection<float>(c);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Projections, EqualTheReferenceForEveryRowCountOfATile) {
  for (int64_t m = 1; m <= 20; ++m) {
    expect_linear_in_all_forms(m, 16 * 9 + 5, 37);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Projections, LeaveGapsBetweenRowsUnwritten) {
  for (int64_t m : {1, 2, 7, 8, 19})
    for (int64_t n : {1, 16, 45, 80}) {
      expect_linear_in_all_forms(m, n, 33, 5, 3);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Projections, EqualTheReferenceOverALongSum) { expect_linear_in_all_forms(3, 17, 4097); }

TEST_P(Projections, ManyRowsMatchReference) { expect_linear_in_all_forms(300, 161, 40); }

TEST_P(Projections, EmptyRowsOrInputs) {
  Guarded<float> y(2);
  y[0] = y[1] = kUntouched;
  Slice<bf16> slice{{nullptr, 2, 0}, nullptr, nullptr, y.data(), 2};
  project<bf16>(nullptr, 0, 1, {&slice, 1}, {}, std::nullopt, serial_for);
  EXPECT_EQ(y[0], kUntouched);
  const Guarded<float> bias(std::vector<float>{3, 4});
  slice.bias = bias.data();
  const Guarded<bf16> x(0);
  project<bf16>(x.data(), 1, 0, {&slice, 1}, {}, std::nullopt, serial_for);
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 4);
}

// With zero weights, outputs are the rounded biases, both in a whole panel and in a partial one.
TEST_P(Projections, RoundOnceToEvenAndKeepNonFinite) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<float, uint16_t>> biases{
      {0x1.01p0f, 0x3f80},                             // a tie, to the even below
      {0x1.03p0f, 0x3f82},                             // a tie, to the even above
      {0x1.010002p0f, 0x3f81},                         // just above a tie
      {-0x1.03p0f, 0xbf82},    {0x1.ffp127f, 0x7f80},  // rounds to infinity
      {infinity, 0x7f80},      {-infinity, 0xff80},
  };
  for (int64_t n : {16, 7, 23}) {
    const auto x = values_of<bf16>({1}), w = values_of<bf16>(std::vector<float>(n, 0));
    const auto panels = packed(w, n, 1);
    Guarded<float> bias(n);
    for (int64_t j = 0; j < n; ++j) bias[j] = biases[j % biases.size()].first;
    bias[n - 2] = nan;
    Guarded<bf16> y(n);
    const Slice<bf16> slice{{panels.data(), n, 1}, bias.data(), y.data(), nullptr, n};
    project<bf16>(x.data(), 1, 1, {&slice, 1}, {}, std::nullopt, serial_for);
    for (int64_t j = 0; j < n; ++j) {
      if (j == n - 2)
        EXPECT_TRUE(std::isnan(to_float(y[j]))) << y[j].bits;
      else
        EXPECT_EQ(y[j].bits, biases[j % biases.size()].second) << "output " << j << " of " << n;
    }
  }
}

template <typename T>
void expect_in_all_forms(const Case& c) {
  expect_projection<T>(c);
  Case scattered = c;
  scattered.panels_per_piece = 1;
  expect_projection<T>(scattered);
  scattered.panels_per_piece = 2;
  expect_projection<T>(scattered);
}

TEST_P(Projections, ApplyEachSegmentsAdapterOnly) {
  const Case c{.m = 130,
               .k = 71,
               .outs = {45},
               .uses = {{0, 1, {1}, 2},
                        {2, 2, {16}, 1},
                        {4, 60, {256}, 0.5},
                        {60, 61, {3}, -1.5},
                        {63, 96, {16}, -0.25},
                        {96, 129, {17}, 1}}};
  expect_in_all_forms<bf16>(c);
  expect_in_all_forms<float>(c);
}

TEST_P(Projections, SumOverlappingSegments) {
  const Case c{.m = 40,
               .k = 64,
               .outs = {80},
               .uses = {{0, 30, {16}, 1}, {0, 30, {8}, -1}, {10, 40, {33}, 0.5}, {29, 31, {4}, 2}}};
  expect_in_all_forms<bf16>(c);
  expect_in_all_forms<float>(c);
}

TEST_P(Projections, HandleEveryRankAndWidthTail) {
  for (int64_t rank : {1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 129, 256})
    for (int64_t width : {1, 15, 16, 17, 33, 64, 129}) {
      const Case c{.m = 34,
                   .k = width,
                   .outs = {130 - width},
                   .x_gap = 3,
                   .y_gap = 2,
                   .uses = {{0, 1, {rank}, -1}, {1, 34, {rank}, 0.75}}};
      expect_projection<bf16>(c);
      expect_projection<float>(c);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Projections, SlicesMayHaveDifferentAdapters) {
  for (int64_t m : {1, 3, 8, 140}) {
    const int64_t half = (m + 1) / 2;
    const Case c{
        .m = m,
        .k = 50,
        .outs = {96, 17, 33},
        .bias = true,
        .uses = {{0, half, {8, 0, 16}, 1}, {half, m, {0, 32, 0}, 0.5}, {0, m, {0, 0, 5}, 1}}};
    expect_in_all_forms<bf16>(c);
    expect_in_all_forms<float>(c);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Projections, GatedMatchesReference) {
  for (int64_t m : {1, 8, 140})
    for (int64_t n : {16, 45, 200}) {
      Case c{.m = m, .k = 50, .outs = {n, n}, .y_gap = 2};
      c.gate = n == 45 ? Gate::kGeluTanh : Gate::kSilu;
      expect_projection<bf16>(c);
      expect_projection<float>(c);
      c.uses = {{0, m, {8, 16}, 1}, {0, 1, {0, 3}, -2}};
      expect_in_all_forms<bf16>(c);
      expect_in_all_forms<float>(c);
      if (HasFatalFailure()) return;
    }
}

// Two threads; the second starts only after the first has waited for it or has done all the work.
TEST_P(Projections, ThreadsEqualSerial) {
  const Case c{.m = 130,
               .k = 50,
               .outs = {130, 70},
               .uses = {{0, 70, {16, 16}, 1}, {60, 130, {64, 8}, 0.5}}};
  for (int i = 0; i < 5; ++i) {
    expect_projection<bf16>(c, two_threads);
    expect_projection<float>(c, two_threads);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Projections, RoundTheIntermediateToBf16) {
  // x · A = (1 + 2^-9, -1): after rounding to bf16 the two cancel.
  const auto x = values_of<bf16>({1, 0x1p-9f});
  const auto w = values_of<bf16>({0, 0}), a = values_of<bf16>({1, 1, -1, 0}),
             b = values_of<bf16>({1, 1});
  const auto panels_w = packed(w, 1, 2), panels_a = packed(a, 2, 2), panels_b = packed(b, 1, 2);
  auto y = values_of<bf16>({5});
  const Slice<bf16> slice{{panels_w.data(), 1, 2}, nullptr, y.data(), nullptr, 1, 0};
  LoraModuleMap modules(1);
  modules.add(0) = {{panels_a.data()}, {panels_b.data()}, 2, 2, 1, 1.f};
  const LoraSegment segment{0, 1, modules.view(), 1.f};
  project<bf16>(x.data(), 1, 2, {&slice, 1}, {&segment, 1}, std::nullopt, serial_for);
  EXPECT_EQ(y[0].bits, 0);
}

}  // namespace
}  // namespace valora::kernels
