// Merged weights with every instruction set of this CPU, against plain double-precision loops.
// Every buffer ends at a guard page.
#include "kernels/cpu/merge/merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class Merges : public testing_support::OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, Merges, testing_support::each_isa(), testing_support::name_of_isa);

struct Sizes {
  int64_t out, in, rank;
  float coefficient = 1;
  int64_t panels_per_piece = 0;
};

// A weight, its adapter, and the output, which is a separate buffer or the weight itself.
template <typename T>
struct Linear {
  Sizes sizes;
  Matrix<T> w, a, b;
  Guarded<T> base, shadow;
  bool in_place;

  Linear(const Sizes& s, uint32_t seed, bool in_place_)
      : sizes(s),
        w(s.out, s.in, seed, 1.f, 0),
        a(s.rank, s.in, seed + 1, 0.3f, s.panels_per_piece),
        b(s.out, s.rank, seed + 2, 0.3f, s.panels_per_piece),
        base(packed(w.values, s.out, s.in)),
        shadow(in_place_ ? 0 : base.size()),
        in_place(in_place_) {}

  T* merged() const { return in_place ? base.data() : shadow.data(); }
  Merge<T> merge() const {
    return {
        {base.data(), sizes.out, sizes.in}, merged(), a.panels(), b.panels(), sizes.coefficient};
  }
  double expected(int64_t o, int64_t i, double& magnitude) const {
    double sum = 0;
    for (int64_t r = 0; r < sizes.rank; ++r) {
      const double term = double(to_float(b.values[o * sizes.rank + r])) *
                          double(to_float(a.values[r * sizes.in + i]));
      sum += term;
      magnitude += std::abs(term);
    }
    magnitude =
        magnitude * std::abs(sizes.coefficient) + std::abs(to_float(w.values[o * sizes.in + i]));
    return to_float(w.values[o * sizes.in + i]) + sizes.coefficient * sum;
  }

  void check() const {
    SCOPED_TRACE(::testing::Message() << "out " << sizes.out << " in " << sizes.in << " rank "
                                      << sizes.rank << " per piece " << sizes.panels_per_piece
                                      << " in place " << in_place << " bytes " << sizeof(T));
    for (int64_t o = 0; o < panels_of(sizes.out) * kPanelOutputs; ++o)
      for (int64_t i = 0; i < panel_elements<T>(sizes.in) / kPanelOutputs; ++i) {
        const int64_t at =
            o / kPanelOutputs * panel_elements<T>(sizes.in) + panel_index<T>(o % kPanelOutputs, i);
        const double got = to_float(merged()[at]);
        if (o >= sizes.out || i >= sizes.in) {
          ASSERT_EQ(got, 0) << "the padding at output " << o << " input " << i;
          continue;
        }
        double magnitude = 0;
        const double sum = expected(o, i, magnitude);
        ASSERT_NEAR(
            got, sum,
            (sizeof(T) == 2 ? kBf16Rounding * std::abs(sum) : 0) + kFp32Error * magnitude + 1e-30)
            << "output " << o << " input " << i;
      }
    for (size_t i = 0; !in_place && i < base.size(); ++i)
      ASSERT_EQ(to_float(base[i]), to_float(w.packed_values[i]))
          << "the base's value " << i << " was touched";
  }
};

template <typename T>
void expect_merged(const std::vector<Sizes>& sizes, bool in_place,
                   const ParallelFor& parallel = serial_for) {
  std::vector<std::unique_ptr<Linear<T>>> linears;
  std::vector<Merge<T>> merges;
  for (const Sizes& s : sizes) {
    linears.push_back(
        std::make_unique<Linear<T>>(s, 10 * static_cast<uint32_t>(linears.size() + 1), in_place));
    merges.push_back(linears.back()->merge());
  }
  merge<T>(merges, parallel);
  for (const auto& linear : linears) linear->check();
}

void expect_merged_in_all_forms(const std::vector<Sizes>& sizes,
                                const ParallelFor& parallel = serial_for) {
  for (const bool in_place : {false, true}) {
    expect_merged<bf16>(sizes, in_place, parallel);
    expect_merged<float>(sizes, in_place, parallel);
  }
}

TEST_P(Merges, EqualTheReferenceAtOddSizes) {
  for (int64_t out : {1, 3, 15, 16, 17, 33, 129})
    for (int64_t in : {1, 2, 3, 15, 16, 17, 33, 129}) {
      expect_merged_in_all_forms({{out, in, 1 + (out + in) % 9, 0.75f}});
      if (HasFatalFailure()) return;
    }
}

TEST_P(Merges, EqualReferenceAtEveryRankTail) {
  for (int64_t rank : {1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 129, 255, 256}) {
    expect_merged_in_all_forms({{35, 77, rank, -1.5f}});
    if (HasFatalFailure()) return;
  }
}

TEST_P(Merges, ManyBlocksEqualReference) {
  expect_merged_in_all_forms({{290, 1100, 3, 2}, {33, 2100, 70, 0.5f}});
}

TEST_P(Merges, AcceptAdaptersInPieces) {
  for (int64_t per_piece : {1, 2, 3}) expect_merged_in_all_forms({{100, 41, 50, 1, per_piece}});
}

TEST_P(Merges, TwoThreadsMergeSeveralLinears) {
  expect_merged_in_all_forms(
      {{64, 96, 16, 1}, {300, 64, 4, -1}, {17, 9, 1, 2}, {64, 2100, 33, 0.25f}}, two_threads);
}

TEST_P(Merges, EmptyMergeDoesNothing) {
  merge<bf16>({}, serial_for);
  const Merge<float> without_rank;
  merge<float>({&without_rank, 1}, serial_for);
}

// W + c · B A = 1 + 2^-8 + 2^-17: rounding an intermediate value would drop the last bit, and the
// resulting tie would round to even.
TEST_P(Merges, RoundOnce) {
  const auto w = values_of<bf16>({1}), a = values_of<bf16>({0x1p-8f, 0x1p-17f}),
             b = values_of<bf16>({1, 1});
  const auto base = packed(w, 1, 1), panels_a = packed(a, 2, 1), panels_b = packed(b, 1, 2);
  Guarded<bf16> merged(base.size());
  const Merge<bf16> one{
      {base.data(), 1, 1}, merged.data(), {panels_a.data(), 2, 1}, {panels_b.data(), 1, 2}, 1};
  merge<bf16>({&one, 1}, serial_for);
  EXPECT_EQ(to_float(merged[0]), 1.0078125f);
}

}  // namespace
}  // namespace valora::kernels
