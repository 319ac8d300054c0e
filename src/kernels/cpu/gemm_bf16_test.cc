// The products of every instruction set that this CPU has, against plain double-precision loops. Every
// buffer ends at a page that may not be touched.
#include "kernels/cpu/gemm_bf16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/guarded.h"
#include "kernels/cpu/isa.h"

namespace valora::kernels {
namespace {

template <typename T>
Guarded<T> random_values(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  Guarded<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = from_float<T>(normal(rng));
  return values;
}

Guarded<bf16> bf16_values(const std::vector<float>& values) {
  Guarded<bf16> rounded(values.size());
  for (size_t i = 0; i < values.size(); ++i) rounded[i] = from_float<bf16>(values[i]);
  return rounded;
}

Guarded<bf16> packed(const Guarded<bf16>& w, int64_t n, int64_t k) {
  Guarded<bf16> panels(packed_elements(n, k));
  pack_panels(w.data(), n, k, panels.data());
  return panels;
}

// A sum in double, and the sum of its terms' magnitudes, which fp32's error grows with.
struct Reference {
  double sum = 0, magnitude = 0;
};

Reference product(const bf16* x, const bf16* w, int64_t k) {
  Reference r;
  for (int64_t i = 0; i < k; ++i) {
    const double term = double(to_float(x[i])) * double(to_float(w[i]));
    r.sum += term;
    r.magnitude += std::abs(term);
  }
  return r;
}

constexpr double kFp32Error = 2e-6;         // of the magnitude: some roundings of 2^-24
constexpr double kBf16Rounding = 1.0 / 255;  // half a unit in the last of 8 bits

class Products : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa(GetParam()); }
  void TearDown() override { set_isa(before_); }

 private:
  const Isa before_ = isa();
};

INSTANTIATE_TEST_SUITE_P(Isas, Products, ::testing::ValuesIn(supported_isas().begin(), supported_isas().end()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

struct Shape {
  int64_t m, n, k;
  int64_t x_gap = 0, y_gap = 0;  // elements between one row's end and the next one's begin
};

constexpr float kUntouched = -77;

template <typename Y>
void expect_product(const Shape& s, bool with_bias) {
  SCOPED_TRACE(::testing::Message() << "m " << s.m << " n " << s.n << " k " << s.k << " bias " << with_bias);
  const int64_t ldx = s.k + s.x_gap, ldy = s.n + s.y_gap;
  // No gap behind the last row: its end is the buffer's.
  const auto x = random_values<bf16>(s.m * ldx - s.x_gap, 1), w = random_values<bf16>(s.n * s.k, 2);
  const auto bias = random_values<float>(s.n, 3);
  const auto panels = packed(w, s.n, s.k);
  Guarded<Y> y(s.m * ldy - s.y_gap);
  std::fill_n(y.data(), y.size(), from_float<Y>(kUntouched));
  const float* added = with_bias ? bias.data() : nullptr;
  gemm_bf16(x.data(), s.m, ldx, {panels.data(), s.n, s.k}, added, y.data(), ldy, serial_for);

  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < ldy && i * ldy + j < static_cast<int64_t>(y.size()); ++j) {
      const double got = to_float(y[i * ldy + j]);
      if (j >= s.n) {
        ASSERT_EQ(got, kUntouched) << "between the rows, row " << i;
        continue;
      }
      Reference expected = product(&x[i * ldx], &w[j * s.k], s.k);
      if (with_bias) expected.sum += bias[j], expected.magnitude += std::abs(bias[j]);
      const double rounding = sizeof(Y) == 2 ? kBf16Rounding * std::abs(expected.sum) : 0;
      ASSERT_NEAR(got, expected.sum, rounding + kFp32Error * expected.magnitude) << "row " << i << " column " << j;
    }
}

void expect_product_in_all_forms(const Shape& s) {
  expect_product<float>(s, true);
  expect_product<float>(s, false);
  expect_product<bf16>(s, true);
  expect_product<bf16>(s, false);
}

TEST_P(Products, EqualTheReferenceAtOddSizes) {
  for (int64_t m : {1, 2, 3, 15, 16, 17, 31, 33, 65, 129})
    for (int64_t n : {1, 2, 3, 15, 16, 17, 31, 33, 65, 129})
      for (int64_t k : {1, 2, 3, 15, 16, 17, 31, 33, 65, 129}) {
        const bool bias = (m + n + k) % 2;
        expect_product<float>({m, n, k}, bias);
        expect_product<bf16>({m, n, k}, !bias);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Products, EqualTheReferenceForEveryRowCountOfATile) {
  for (int64_t m = 1; m <= 20; ++m) {
    expect_product_in_all_forms({m, 16 * 9 + 5, 37});
    if (HasFatalFailure()) return;
  }
}

TEST_P(Products, KeepToTheirRowsWhereStridesAreWider) {
  for (int64_t m : {1, 2, 7, 8, 19})
    for (int64_t n : {1, 16, 45, 80}) {
      expect_product_in_all_forms({m, n, 33, 5, 3});
      if (HasFatalFailure()) return;
    }
}

TEST_P(Products, EqualTheReferenceOverALongSum) { expect_product_in_all_forms({3, 17, 4097}); }

TEST_P(Products, WithoutRowsOrInputs) {
  const auto w = bf16_values({1, 2});
  const auto panels = packed(w, 2, 1);
  Guarded<float> y(2);
  y[0] = y[1] = kUntouched;
  gemm_bf16<float>(nullptr, 0, 1, {panels.data(), 2, 1}, nullptr, y.data(), 2, serial_for);
  EXPECT_EQ(y[0], kUntouched);
  const Guarded<float> bias(std::vector<float>{3, 4});
  const Guarded<bf16> x(0);
  gemm_bf16(x.data(), 1, 0, {nullptr, 2, 0}, bias.data(), y.data(), 2, serial_for);
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 4);
}

// Outputs of one row against the identity, in a whole panel and in a tail, plus a bias.
TEST_P(Products, RoundToNearestEvenOnceAndKeepWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<float, uint16_t>> biases{
      {0x1.01p0f, 0x3f80},     // a tie, to the even below
      {0x1.03p0f, 0x3f82},     // a tie, to the even above
      {0x1.010002p0f, 0x3f81}, // just above a tie
      {-0x1.03p0f, 0xbf82},    {0x1.ffp127f, 0x7f80},  // rounds to infinity
      {infinity, 0x7f80},      {-infinity, 0xff80},
  };
  for (int64_t n : {16, 7, 23}) {
    const Guarded<bf16> x = bf16_values({1}), w = bf16_values(std::vector<float>(n, 0));
    const auto panels = packed(w, n, 1);
    Guarded<float> bias(n);
    for (int64_t j = 0; j < n; ++j) bias[j] = biases[j % biases.size()].first;
    bias[n - 2] = nan;
    Guarded<bf16> y(n);
    gemm_bf16(x.data(), 1, 1, {panels.data(), n, 1}, bias.data(), y.data(), n, serial_for);
    for (int64_t j = 0; j < n; ++j) {
      if (j == n - 2) EXPECT_TRUE(std::isnan(to_float(y[j]))) << y[j].bits;
      else EXPECT_EQ(y[j].bits, biases[j % biases.size()].second) << "output " << j << " of " << n;
    }
  }
}

struct Adapter {
  int64_t rank, in, out;
  Guarded<bf16> a, b, panels_a, panels_b;
  Adapter(int64_t r, int64_t i, int64_t o)
      : rank(r), in(i), out(o),
        a(random_values<bf16>(r * i, 10 + r, 0.2f)), b(random_values<bf16>(o * r, 20 + r, 0.2f)),
        panels_a(packed(a, r, i)), panels_b(packed(b, o, r)) {}
  LoraRun run(int64_t begin, int64_t end, float coefficient) const {
    return {begin, end, {panels_a.data(), rank, in}, {panels_b.data(), out, rank}, coefficient};
  }
};

struct Use {
  const Adapter* adapter;
  int64_t begin, end;
  float coefficient;
};

// What the use adds to one token's output. The low-rank intermediate is rounded; where fp32 and double
// differ, it may be by one unit.
Reference low_rank(const Use& use, const bf16* x, int64_t output) {
  const Adapter& ad = *use.adapter;
  Reference delta;
  for (int64_t r = 0; r < ad.rank; ++r) {
    const float low = to_float(from_float<bf16>(static_cast<float>(product(x, &ad.a[r * ad.in], ad.in).sum)));
    const double term = double(use.coefficient) * low * to_float(ad.b[output * ad.rank + r]);
    delta.sum += term;
    delta.magnitude += std::abs(term);
  }
  return delta;
}

void expect_lora(int64_t tokens, int64_t in, int64_t out, int64_t x_gap, int64_t y_gap, const std::vector<Use>& uses) {
  const int64_t ldx = in + x_gap, ldy = out + y_gap;
  const auto x = random_values<bf16>(tokens * ldx - x_gap, 1, 0.3f);
  const auto before = random_values<bf16>(tokens * ldy - y_gap, 2);
  Guarded<bf16> y(before.size());
  std::copy_n(before.data(), before.size(), y.data());
  std::vector<LoraRun> runs;
  for (const Use& use : uses) runs.push_back(use.adapter->run(use.begin, use.end, use.coefficient));
  lora_bf16(x.data(), ldx, y.data(), ldy, runs, serial_for);

  for (int64_t t = 0; t < tokens; ++t) {
    const auto mine = std::find_if(uses.begin(), uses.end(), [&](const Use& u) { return t >= u.begin && t < u.end; });
    for (int64_t o = 0; o < ldy && t * ldy + o < static_cast<int64_t>(y.size()); ++o) {
      const int64_t at = t * ldy + o;
      if (mine == uses.end() || o >= out) {
        ASSERT_EQ(y[at].bits, before[at].bits) << "token " << t << " column " << o << " is nobody's";
        continue;
      }
      const Reference delta = low_rank(*mine, &x[t * ldx], o);
      const double expected = to_float(before[at]) + delta.sum;
      ASSERT_NEAR(to_float(y[at]), expected, kBf16Rounding * std::abs(expected) + delta.magnitude / 128 + 1e-6)
          << "token " << t << " output " << o << " rank " << mine->adapter->rank;
    }
  }
}

TEST_P(Products, AddEachRunUnderItsOwnAdapterAndLeaveOtherTokens) {
  const int64_t in = 71, out = 45;
  const Adapter one(1, in, out), three(3, in, out), sixteen(16, in, out), odd(17, in, out), most(256, in, out);
  expect_lora(130, in, out, 0, 0,
              {{&one, 0, 1, 2.f}, {&sixteen, 2, 2, 1.f}, {&most, 4, 60, 0.5f}, {&three, 60, 61, -1.5f},
               {&sixteen, 63, 96, -0.25f}, {&odd, 96, 129, 1.f}});
}

TEST_P(Products, AddForRanksAndWidthsOfEveryTail) {
  for (int64_t rank : {1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 129, 256})
    for (int64_t width : {1, 15, 16, 17, 33, 64, 129}) {
      const int64_t other = 130 - width;
      const Adapter adapter(rank, width, other);
      expect_lora(34, width, other, 3, 2, {{&adapter, 0, 1, -1.f}, {&adapter, 1, 34, 0.75f}});
      if (HasFatalFailure()) return;
    }
}

TEST_P(Products, NoRuns) { expect_lora(3, 8, 8, 0, 0, {}); }

TEST_P(Products, RoundTheIntermediateToBf16) {
  // x · A = (1 + 2^-9, -1); rounded it cancels to nothing.
  const auto x = bf16_values({1, 0x1p-9f});
  const auto a = bf16_values({1, 1, -1, 0}), b = bf16_values({1, 1});
  const auto panels_a = packed(a, 2, 2), panels_b = packed(b, 1, 2);
  Guarded<bf16> y = bf16_values({0});
  const LoraRun run{0, 1, {panels_a.data(), 2, 2}, {panels_b.data(), 1, 2}, 1.f};
  lora_bf16(x.data(), 2, y.data(), 1, std::span(&run, 1), serial_for);
  EXPECT_EQ(y[0].bits, 0);
}

}  // namespace
}  // namespace valora::kernels
