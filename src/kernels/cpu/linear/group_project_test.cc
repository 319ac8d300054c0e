// Groups of rows with linears of their own, against the same projections one by one.
#include <gtest/gtest.h>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class GroupProjections : public OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, GroupProjections, each_isa(), name_of_isa);

// The linears of one group: two of equal sizes, in floats or integers, and an adapter on the first.
template <typename T>
struct Expert {
  Expert(int64_t m, int64_t n, int64_t k, int bits, uint32_t seed) : rows(m), out(n) {
    const Case c{.k = k, .bits = bits, .group = 32};
    for (uint32_t s = 0; s < 2; ++s) {
      floats.push_back(std::make_unique<Matrix<T>>(n, k, seed + s, 0.3f, 0));
      if (bits > 0) integers.push_back(std::make_unique<IntegerMatrix>(c, n, seed + s));
    }
    use = {m / 3, m, {}, 0.7f};
    adapter.use = &use;
    adapter.add(4, k, n, seed + 7, seed + 8, 0);
    adapter.add(0, k, n, seed + 9, seed + 10, 0);
  }

  std::array<Slice<T>, 2> slices(T* y) const {
    std::array<Slice<T>, 2> result;
    for (size_t s = 0; s < 2; ++s) {
      result[s].w = floats[s]->panels();
      if (!integers.empty()) {
        result[s].integers = &integers[s]->panels;
        result[s].w.data = nullptr;
      }
      result[s].y = y;
      result[s].ldy = out;
      result[s].module = static_cast<int>(s);
    }
    return result;
  }

  int64_t rows, out;
  std::vector<std::unique_ptr<Matrix<T>>> floats;
  std::vector<std::unique_ptr<IntegerMatrix>> integers;
  Use use;
  Adapter<T> adapter;
};

template <typename T>
void expect_groups(std::vector<int64_t> rows, int64_t n, int64_t k, int bits, bool gated) {
  const std::optional<Gate> gate = gated ? std::optional(Gate::kSilu) : std::nullopt;
  std::vector<std::unique_ptr<Expert<T>>> experts;
  int64_t m = 0;
  for (const int64_t count : rows) {
    experts.push_back(std::make_unique<Expert<T>>(count, n, k, bits, 10 * experts.size() + 1));
    m += count;
  }
  const Guarded<T> x = random_values<T>(static_cast<size_t>(m * k), 99);
  Guarded<T> together(static_cast<size_t>(m * n)), apart(static_cast<size_t>(m * n));
  std::vector<std::array<Slice<T>, 2>> slices(experts.size());
  std::vector<LoraSegment> segments(experts.size());
  std::vector<RowGroup<T>> groups;
  int64_t begin = 0;
  for (size_t i = 0; i < experts.size(); ++i) {
    const Expert<T>& e = *experts[i];
    segments[i] = e.adapter.segment();
    slices[i] = e.slices(together.data() + begin * n);
    const size_t count = gated ? 2 : 1;
    groups.push_back({x.data() + begin * k, e.rows, {slices[i].data(), count}, {&segments[i], 1}});
    auto alone = e.slices(apart.data() + begin * n);
    project<T>(groups[i].x, e.rows, k, {alone.data(), count}, groups[i].segments, gate, serial_for);
    begin += e.rows;
  }
  project_groups<T>(groups, k, gate, two_threads);
  for (int64_t i = 0; i < m * n; ++i)
    ASSERT_EQ(to_float(together[i]), to_float(apart[i])) << "row " << i / n << " output " << i % n;
}

TEST_P(GroupProjections, EqualProjectionsOneByOne) {
  for (const int bits : {0, 4, 8})
    for (const bool gated : {false, true}) {
      expect_groups<bf16>({1, 1, 1, 1, 1, 1}, 70, 96, bits, gated);
      expect_groups<bf16>({3, 140, 1, 18}, 33, 64, bits, gated);
      expect_groups<float>({2, 0, 5}, 45, 130, bits, gated);
      if (HasFatalFailure()) return;
    }
}

TEST_P(GroupProjections, NoRowsWriteNothing) {
  project_groups<float>({}, 8, std::nullopt, serial_for);
  const RowGroup<float> empty;
  project_groups<float>({&empty, 1}, 8, std::nullopt, serial_for);
}

template <typename T>
void expect_weighted(int64_t tokens, int64_t count, int64_t width) {
  const int64_t rows = tokens * count;
  const Guarded<T> x = random_values<T>(static_cast<size_t>(rows * width), 3);
  const Guarded<float> weights = random_values<float>(static_cast<size_t>(rows), 4);
  Guarded<int64_t> places(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) places[i] = (i * 7 + 3) % rows;
  Guarded<T> y(static_cast<size_t>(tokens * width));
  weighted_rows<T>(x.data(), places.data(), weights.data(), tokens, count, width, y.data(),
                   two_threads);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < width; ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t c = 0; c < count; ++c) {
        const double term =
            double(weights[t * count + c]) * double(to_float(x[places[t * count + c] * width + i]));
        sum += term;
        magnitude += std::abs(term);
      }
      const double slack =
          kFp32Error * magnitude + (sizeof(T) == 2 ? kBf16Rounding * std::abs(sum) : 0);
      ASSERT_NEAR(to_float(y[t * width + i]), sum, slack) << "token " << t << " value " << i;
    }
}

TEST(WeightedRows, EqualTheReference) {
  for (const int64_t tokens : {1, 2, 61})
    for (const int64_t count : {1, 3, 8})
      for (const int64_t width : {1, 17, 256, 300, 1031}) {
        expect_weighted<bf16>(tokens, count, width);
        expect_weighted<float>(tokens, count, width);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace valora::kernels
