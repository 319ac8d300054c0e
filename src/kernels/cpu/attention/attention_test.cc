// Attention with every instruction set of this CPU, against plain double-precision loops.
#include "kernels/cpu/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/attention/runs.h"
#include "kernels/testing/attended.h"
#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using testing_support::random_values;

class Attention : public testing_support::OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, Attention, testing_support::each_isa(),
                         testing_support::name_of_isa);

constexpr float kScale = 0.2f;

// bf16: weights and outputs are each rounded with a relative error of at most 2^-9.
template <typename T>
double slack(double magnitude) {
  return magnitude * (sizeof(T) == 2 ? 1.0 / 200 : 3e-6) + 1e-6;
}

// One output row: q against `count` keys. ld: row stride of keys and values in elements.
template <typename T>
void expect_row(const T* q, const T* k, const T* v, int64_t ld, int64_t count, int64_t dim,
                const T* o) {
  std::vector<double> p(count);
  double total = 0;
  for (int64_t t = 0; t < count; ++t) {
    double score = 0;
    for (int64_t d = 0; d < dim; ++d) score += double(to_float(q[d])) * to_float(k[t * ld + d]);
    total += p[t] = std::exp(kScale * score);
  }
  for (int64_t d = 0; d < dim; ++d) {
    double expected = 0, magnitude = 0;
    for (int64_t t = 0; t < count; ++t) {
      const double term = p[t] / total * to_float(v[t * ld + d]);
      expected += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(to_float(o[d]), expected, slack<T>(magnitude))
        << "of " << count << " keys, dimension " << d;
  }
}

struct Sequence {
  int64_t context, queries;
  std::vector<PositionRange> joint = {};
};

// Window lengths, up to the longest sequence; 0: no window.
constexpr int64_t kWindows[] = {0, 1, 7, 16, 17, 40, 300};

struct Shape {
  int64_t heads, kv_heads, dim;
};

// Sequences whose blocks are scattered in an arena filled with NaN.
template <typename T>
class Paged {
 public:
  Paged(const Shape& shape, const std::vector<Sequence>& sequences, int64_t window = 0)
      : shape_(shape), sequences_(sequences), window_(window) {
    int32_t blocks = 0;
    for (const Sequence& s : sequences)
      blocks += static_cast<int32_t>((s.context + s.queries + kBlockTokens - 1) / kBlockTokens);
    std::vector<int32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    const int64_t layer = kv_elements<T>(shape.kv_heads, shape.dim);
    arena_.assign(2 * blocks * layer, from_float<T>(std::numeric_limits<float>::quiet_NaN()));
    layer_ = {arena_.data() + layer, 2 * layer, shape.kv_heads, shape.dim};
    for (const Sequence& s : sequences) {
      const int64_t count = (s.context + s.queries + kBlockTokens - 1) / kBlockTokens;
      tables_.emplace_back(order.end() - count, order.end());
      order.resize(order.size() - count);
    }
  }

  void check(const ParallelFor& parallel = serial_for) {
    const int64_t kv = shape_.kv_heads * shape_.dim, width = shape_.heads * shape_.dim;
    std::vector<QuerySpan> spans;
    int64_t tokens = 0;
    for (size_t s = 0; s < sequences_.size(); ++s) {
      const auto& [context, queries, joint] = sequences_[s];
      keys_.push_back(random_values<T>((context + queries) * kv, 10 + s));
      values_.push_back(random_values<T>((context + queries) * kv, 20 + s));
      // The context is stored in two steps; the second starts in the middle of a block.
      const int64_t first = context / 2;
      for (const auto& [from, count] :
           {std::pair{int64_t{0}, first}, {first, context - first}, {context, queries}}) {
        const QuerySpan span{0, count, from, tables_[s].data()};
        store_kv<T>(keys_[s].data() + from * kv, kv, values_[s].data() + from * kv, kv, {&span, 1},
                    layer_, parallel);
      }
      spans.push_back({tokens, queries, context, tables_[s].data(), joint});
      tokens += queries;
    }
    const auto q = random_values<T>(tokens * width, 3);
    Guarded<T> o(tokens * width);
    paged_attention<T>({q.data(), width}, {o.data(), width}, shape_.heads, kScale, window_, spans,
                       layer_, parallel);
    const int64_t group = shape_.heads / shape_.kv_heads;
    for (size_t s = 0; s < sequences_.size(); ++s)
      for (int64_t i = 0; i < sequences_[s].queries; ++i)
        for (int64_t h = 0; h < shape_.heads; ++h) {
          SCOPED_TRACE(::testing::Message() << "sequence " << s << " query " << i << " head " << h
                                            << " dim " << shape_.dim);
          const int64_t at = (spans[s].begin + i) * width + h * shape_.dim,
                        context = sequences_[s].context;
          const auto [begin, end] = testing_support::attended(
              context + i, context + sequences_[s].queries, window_, sequences_[s].joint);
          const int64_t first = begin * kv + h / group * shape_.dim;
          expect_row<T>(&q[at], &keys_[s][first], &values_[s][first], kv, end - begin, shape_.dim,
                        &o[at]);
          if (::testing::Test::HasFatalFailure()) return;
        }
  }

 private:
  Shape shape_;
  std::vector<Sequence> sequences_;
  int64_t window_;
  std::vector<T> arena_;
  KvLayer<T> layer_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<Guarded<T>> keys_, values_;
};

void expect_paged(const Shape& shape, const std::vector<Sequence>& sequences, int64_t window = 0) {
  Paged<bf16>(shape, sequences, window).check();
  Paged<float>(shape, sequences, window).check();
}

TEST_P(Attention, MixedDecodesAndChunksMatchReference) {
  for (const Shape& shape : {Shape{6, 2, 20}, {7, 1, 64}, {4, 4, 16}, {2, 2, 7}, {14, 2, 80}}) {
    expect_paged(shape, {{20, 1}, {0, 9}, {40, 5}, {0, 1}, {15, 1}, {16, 1}, {31, 33}});
    if (HasFatalFailure()) return;
  }
}

TEST_P(Attention, LongChunksMatchReference) { expect_paged({4, 2, 32}, {{0, 150}, {37, 130}}); }

TEST_P(Attention, SplitKeysMatchReference) {
  expect_paged({4, 2, 16}, {{1500, 1}, {1023, 1}, {1024, 1}, {2047, 2}, {2500, 7}, {3, 1}});
}

TEST_P(Attention, WindowsMatchReference) {
  for (const int64_t window : kWindows) {
    SCOPED_TRACE(window);
    expect_paged({6, 2, 20}, {{20, 1}, {0, 9}, {40, 5}, {0, 1}, {15, 1}, {16, 1}, {31, 33}},
                 window);
    expect_paged({4, 2, 32}, {{0, 150}, {37, 130}}, window);          // several tiles of queries
    expect_paged({4, 2, 16}, {{1023, 1}, {700, 7}, {3, 1}}, window);  // split over their keys
    if (HasFatalFailure()) return;
  }
  Paged<bf16>({4, 2, 16}, {{1500, 1}, {0, 60}, {33, 17}}, 600).check(testing_support::two_threads);
}

// Joint ranges (pictures) within a chunk, begun in an earlier chunk, adjacent to each other, longer
// than the window, and across several tiles of queries.
TEST_P(Attention, JointRangesAttendBothWays) {
  const std::vector<Sequence> sequences{{0, 40, {{3, 20}, {20, 33}}},
                                        {25, 30, {{2, 9}, {18, 50}}},
                                        {40, 1, {{4, 30}}},
                                        {16, 150, {{17, 160}}},
                                        {0, 5},
                                        {600, 7, {{300, 500}, {598, 607}}}};
  for (const int64_t window : kWindows) {
    SCOPED_TRACE(window);
    expect_paged({6, 2, 20}, sequences, window);
    if (HasFatalFailure()) return;
  }
  Paged<bf16>({4, 2, 16}, sequences, 40).check(testing_support::two_threads);
}

// Blocks outside the window may hold anything: they are never read.
TEST_P(Attention, BlocksOutsideTheWindowAreNotRead) {
  const int64_t length = 700, window = 40, dim = 16;
  const auto k = random_values<float>(length * dim, 1), v = random_values<float>(length * dim, 2),
             q = random_values<float>(length * dim, 3);
  std::vector<float> arena(44 * kv_elements<float>(1, dim));
  std::vector<int32_t> table(44);
  std::iota(table.begin(), table.end(), 0);
  const KvLayer<float> layer{arena.data(), kv_elements<float>(1, dim), 1, dim};
  const QuerySpan all{0, length, 0, table.data()};
  store_kv<float>(k.data(), dim, v.data(), dim, {&all, 1}, layer, serial_for);
  for (const int64_t queries : {1, 8, 120}) {
    const int64_t context = length - queries, hidden = (context - window + 1) / kBlockTokens;
    std::vector<int32_t> cut = table;
    std::fill_n(cut.begin(), hidden, 1 << 30);  // far outside the arena
    std::vector<float> o(queries * dim);
    const QuerySpan last{0, queries, context, cut.data()};
    paged_attention<float>({&q[context * dim], dim}, {o.data(), dim}, 1, kScale, window, {&last, 1},
                           layer, serial_for);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t first = (context + i - window + 1) * dim;
      expect_row<float>(&q[(context + i) * dim], &k[first], &v[first], dim, window, dim,
                        &o[i * dim]);
    }
  }
}

TEST_P(Attention, GrowingScoresRescaleSums) {
  // Each chunk's maximum exceeds all earlier ones, so earlier sums must be rescaled.
  const int64_t keys = 300, dim = 16;
  std::vector<float> k(keys * dim, 0), v(keys * dim, 0), q(dim, 0), o(dim);
  for (int64_t t = 0; t < keys; ++t) k[t * dim] = 0.5f * t, v[t * dim] = static_cast<float>(t);
  q[0] = 1;
  std::vector<float> arena(19 * kv_elements<float>(1, dim));
  std::vector<int32_t> table(19);
  std::iota(table.begin(), table.end(), 0);
  const KvLayer<float> layer{arena.data(), kv_elements<float>(1, dim), 1, dim};
  const QuerySpan all{0, keys, 0, table.data()}, last{0, 1, keys - 1, table.data()};
  store_kv<float>(k.data(), dim, v.data(), dim, {&all, 1}, layer, serial_for);
  paged_attention<float>({q.data(), dim}, {o.data(), dim}, 1, 1.f, 0, {&last, 1}, layer,
                         serial_for);
  double expected = 0, total = 0;
  for (int64_t t = 0; t < keys; ++t) {
    const double weight = std::exp(0.5 * (t - keys + 1));
    total += weight;
    expected += weight * t;
  }
  EXPECT_NEAR(o[0], expected / total, 1e-3);
}

TEST_P(Attention, ResultIndependentOfBatch) {
  const Shape shape{4, 2, 32};
  const int64_t width = shape.heads * shape.dim, kv = shape.kv_heads * shape.dim, length = 1100;
  const auto k = random_values<bf16>(length * kv, 1), v = random_values<bf16>(length * kv, 2),
             q = random_values<bf16>(3 * width, 3);
  std::vector<bf16> arena(80 * kv_elements<bf16>(shape.kv_heads, shape.dim));
  std::vector<int32_t> table(80);
  std::iota(table.begin(), table.end(), 0);
  const KvLayer<bf16> layer{arena.data(), kv_elements<bf16>(shape.kv_heads, shape.dim),
                            shape.kv_heads, shape.dim};
  const QuerySpan all{0, length, 0, table.data()};
  store_kv<bf16>(k.data(), kv, v.data(), kv, {&all, 1}, layer, serial_for);
  std::vector<bf16> alone(width), together(3 * width);
  const std::vector<QuerySpan> one{{0, 1, length - 1, table.data()}},
      three{{0, 1, length - 1, table.data()}, {1, 1, 40, table.data()}, {2, 1, 700, table.data()}};
  for (const int64_t window : {0, 600}) {
    paged_attention<bf16>({q.data(), width}, {alone.data(), width}, shape.heads, kScale, window,
                          one, layer, serial_for);
    paged_attention<bf16>({q.data(), width}, {together.data(), width}, shape.heads, kScale, window,
                          three, layer, serial_for);
    for (int64_t i = 0; i < width; ++i) ASSERT_EQ(alone[i].bits, together[i].bits) << i;
  }
}

TEST_P(Attention, ThreadsEqualSerial) {
  Paged<bf16>({4, 2, 16}, {{1500, 1}, {0, 60}, {33, 17}}).check(testing_support::two_threads);
  Paged<float>({4, 2, 16}, {{1500, 1}, {0, 60}, {33, 17}}).check(testing_support::two_threads);
}

// q, k and v are columns of one tensor. Keys are stored, and queries attend, in parts that end at
// `cuts`.
template <typename T>
void expect_runs(int64_t heads, int64_t dim, const std::vector<int64_t>& ends,
                 const std::vector<int64_t>& cuts, const ParallelFor& parallel) {
  const int64_t rows = ends.back(), width = heads * dim, ld = 3 * width;
  const auto qkv = random_values<T>(rows * ld, 4);
  const Runs runs(ends);
  Guarded<T> packed(runs.blocks() * kv_elements<T>(heads, dim)), o(rows * width);
  std::fill_n(packed.data(), runs.blocks() * kv_elements<T>(heads, dim),
              from_float<T>(std::numeric_limits<float>::quiet_NaN()));
  const PackedRuns<T> store{runs, packed.data(), heads, dim};
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    const T* row = qkv.data() + begin * ld;
    store_runs<T>({row + width, ld}, {row + 2 * width, ld}, begin, end - begin, store, parallel);
    begin = end;
  }
  begin = 0;
  for (const int64_t end : cuts) {
    attend_runs<T>({qkv.data() + begin * ld, ld}, {o.data() + begin * width, width}, begin,
                   end - begin, kScale, store, parallel);
    begin = end;
  }
  for (int64_t run = 0; run < runs.count(); ++run)
    for (int64_t i = runs.begin(run); i < runs.end(run); ++i)
      for (int64_t h = 0; h < heads; ++h) {
        const T* row = &qkv[runs.begin(run) * ld + h * dim];
        expect_row<T>(&qkv[i * ld + h * dim], row + width, row + 2 * width, ld, runs.length(run),
                      dim, &o[i * width + h * dim]);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST_P(Attention, RunsMatchReferenceInAnyParts) {
  const std::vector<int64_t> ends{5, 6, 6, 38, 170};
  for (const std::vector<int64_t>& cuts :
       std::vector<std::vector<int64_t>>{{170}, {1, 6, 7, 36, 61, 170}})
    for (int64_t dim : {16, 20, 80}) {
      expect_runs<bf16>(2, dim, ends, cuts, serial_for);
      expect_runs<float>(2, dim, ends, cuts, serial_for);
      expect_runs<bf16>(3, dim, ends, cuts, testing_support::two_threads);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace valora::kernels
