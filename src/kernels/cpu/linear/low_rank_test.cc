// Low-rank products without the dense product, with tuned and explicit tiles, against plain
// double-precision loops.
#include "kernels/cpu/linear/low_rank.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using namespace testing_support;

class LowRankProducts : public testing_support::OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, LowRankProducts, testing_support::each_isa(),
                         testing_support::name_of_isa);

template <typename T>
void expect_low_rank(int64_t m, int64_t in, int64_t out, const std::vector<Use>& uses,
                     std::optional<CpuTile> tile) {
  SCOPED_TRACE(::testing::Message()
               << "m " << m << " in " << in << " out " << out << " bytes " << sizeof(T) << " tile "
               << (tile ? tile->rows * 100 + tile->panels * 10 + tile->chains : 0));
  const auto x = random_values<T>(m * in, 1, 0.3f);
  auto y = random_values<float>(m * out, 2);
  const Guarded<float> before = values_of<float>(std::vector<float>(y.data(), y.data() + m * out));
  std::vector<Adapter<T>> adapters;
  std::vector<LoraSegment> segments;
  for (const Use& use : uses) {
    Adapter<T> adapter{&use, {}, {}};
    const uint32_t seed = 10 + static_cast<uint32_t>(2 * segments.size());
    adapter.add(use.ranks[0], in, out, seed, seed + 1, 0);
    adapters.push_back(std::move(adapter));
    segments.push_back(adapters.back().segment());
  }
  low_rank<T>(x.data(), m, in, y.data(), out, 0, segments, two_threads, tile);
  for (int64_t t = 0; t < m; ++t)
    for (int64_t o = 0; o < out; ++o) {
      Reference r{before[t * out + o], std::abs(before[t * out + o])};
      double slack = 0;
      for (const Adapter<T>& adapter : adapters)
        if (t >= adapter.use->begin && t < adapter.use->end)
          add_low_rank(adapter, 0, &x[t * in], o, r, slack);
      ASSERT_NEAR(y[t * out + o], r.sum, slack + kFp32Error * r.magnitude + 1e-30)
          << "row " << t << " column " << o;
    }
}

TEST_P(LowRankProducts, AddEverySegmentsProduct) {
  const std::vector<std::vector<Use>> batches{
      {},
      {{0, 7, {0}, 1.f}},
      {{0, 1, {8}, 2.f}, {1, 4, {16}, -1.f}, {5, 7, {3}, 0.5f}},
      {{0, 7, {64}, 1.f}, {2, 5, {16}, 0.25f}, {3, 3, {16}, 1.f}},
  };
  for (const auto& uses : batches)
    for (const auto& tile : {std::optional<CpuTile>{}, std::optional(CpuTile{6, 4, 1}),
                             std::optional(CpuTile{1, 1, 8}), std::optional(CpuTile{16, 8, 8})}) {
      expect_low_rank<bf16>(7, 130, 75, uses, tile);
      expect_low_rank<float>(7, 130, 75, uses, tile);
      if (HasFatalFailure()) return;
    }
}

TEST_P(LowRankProducts, ManyRowsAndOutputsMatchReference) {
  const std::vector<Use> uses{{0, 140, {16}, 1.f}, {140, 141, {32}, 1.f}, {200, 300, {8}, 2.f}};
  expect_low_rank<bf16>(300, 96, 1025, uses, {});
  expect_low_rank<float>(300, 96, 1025, uses, {});
}

}  // namespace
}  // namespace valora::kernels
