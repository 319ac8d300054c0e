// Attention over an 8-bit KV cache, with every instruction set of this CPU, against plain
// double-precision loops over the decoded values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/testing/attended.h"
#include "kernels/testing/isa_fixture.h"
#include "kernels/testing/projection_reference.h"
#include "kernels/testing/two_threads.h"

namespace valora::kernels {
namespace {

using testing_support::random_values;

constexpr KvFormat kFormats[] = {KvFormat::kInt8, KvFormat::kFp8};
constexpr float kScoreScale = 0.2f, kNan = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> read_back(const std::vector<float>& x, KvFormat format) {
  std::vector<uint8_t> codes(x.size());
  const float scale =
      to_float(round_to_bytes(x.data(), static_cast<int64_t>(x.size()), format, codes.data()));
  std::vector<float> y;
  for (const uint8_t code : codes) y.push_back(number_of(code, format) * scale);
  return y;
}

TEST(KvBytes, RoundToNearestNumber) {
  std::mt19937 rng(3);
  for (const KvFormat format : kFormats)
    for (const float size : {1e-30f, 0.01f, 1.f, 300.f, 1e30f})
      for (int64_t count : {1, 2, 7, 64, 129}) {
        std::vector<float> x(static_cast<size_t>(count));
        for (float& value : x)
          value = size * std::normal_distribution<float>()(rng) *
                  std::exp2(-static_cast<float>(rng() % 12));
        std::vector<uint8_t> codes(x.size());
        const float scale = to_float(round_to_bytes(x.data(), count, format, codes.data()));
        for (int64_t i = 0; i < count; ++i) {
          double nearest = INFINITY;
          for (int code = 0; code < 256; ++code)
            if (format == KvFormat::kInt8 ? code != 128 : (code & 127) != 127)
              nearest = std::min(nearest,
                                 std::abs(double{x[i]} - double{number_of(code, format)} * scale));
          ASSERT_NEAR(std::abs(double{x[i]} - double{number_of(codes[i], format)} * scale), nearest,
                      1e-6 * std::abs(x[i]))
              << x[i] << " of scale " << scale;
        }
      }
}

// A value halfway between two numbers rounds to the even one.
TEST(KvBytes, RoundTiesToEven) {
  const std::vector<float> x{127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f};
  EXPECT_EQ(read_back(x, KvFormat::kInt8), (std::vector<float>{127, 0, 2, 2, 0, -2, 126}));
  const std::vector<float> y{448, 17, 19, -17, 0x1p-10f, 0x3p-10f, 0x1.1p-6f, 0x1.3p-6f};
  EXPECT_EQ(read_back(y, KvFormat::kFp8),
            (std::vector<float>{448, 16, 20, -16, 0, 0x1p-8f, 0x1p-6f, 0x1.4p-6f}));
}

TEST(KvBytes, ZerosStayZero) {
  for (const KvFormat format : kFormats) {
    EXPECT_EQ(read_back({0, -0.f, 0}, format), (std::vector<float>(3)));
    for (const float tiny : {1e-45f, 1e-38f, 1e-36f})
      for (const float value : read_back({tiny, 0, -tiny}, format)) EXPECT_NEAR(value, 0, 2e-36f);
  }
}

TEST(KvBytes, NonFiniteBecomesNaN) {
  for (const KvFormat format : kFormats)
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity})
      for (const float value : read_back({1, bad, 2}, format)) EXPECT_TRUE(std::isnan(value));
  for (const KvFormat format : kFormats)
    for (const float value : read_back({3e38f, -1e38f}, format)) EXPECT_TRUE(std::isfinite(value));
}

class ByteAttention : public testing_support::OnEachIsa {};
INSTANTIATE_TEST_SUITE_P(Isas, ByteAttention, testing_support::each_isa(),
                         testing_support::name_of_isa);

struct ByteSequence {
  int64_t context, queries;
  std::vector<PositionRange> joint = {};
};
struct ByteShape {
  int64_t heads, kv_heads, dim;
};

// Sequences in scattered blocks of an arena filled with 0xff, that is, NaN scales and codes that no
// token has.
template <typename T>
class ByteCache {
 public:
  ByteCache(const ByteShape& shape, KvFormat format, const std::vector<ByteSequence>& sequences)
      : shape_(shape), format_(format), sequences_(sequences) {
    int32_t blocks = 0;
    for (const ByteSequence& s : sequences)
      blocks += static_cast<int32_t>((s.context + s.queries + kBlockTokens - 1) / kBlockTokens);
    std::vector<int32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    const int64_t layer = kv_bytes(shape.kv_heads, shape.dim);
    arena_.assign(2 * blocks * layer, 0xff);
    layer_ = {arena_.data() + layer, 2 * layer, shape.kv_heads, shape.dim, format};
    const int64_t kv = shape.kv_heads * shape.dim;
    for (const ByteSequence& s : sequences) {
      const int64_t length = s.context + s.queries, count = (length + kBlockTokens - 1) / 16;
      tables.emplace_back(order.end() - count, order.end());
      order.resize(order.size() - count);
      keys.push_back(random_values<T>(length * kv, 10 + tables.size()));
      values.push_back(random_values<T>(length * kv, 20 + tables.size()));
    }
  }

  // Stores sequence s in steps that end at `ends`.
  void store(size_t s, const std::vector<int64_t>& ends, const ParallelFor& parallel = serial_for) {
    const int64_t kv = shape_.kv_heads * shape_.dim;
    int64_t from = 0;
    for (const int64_t end : ends) {
      const QuerySpan span{0, end - from, from, tables[s].data()};
      store_kv_bytes<T>(keys[s].data() + from * kv, kv, values[s].data() + from * kv, kv,
                        {&span, 1}, layer_, parallel);
      from = end;
    }
  }

  std::vector<T> attend(const std::vector<T>& q, const std::vector<QuerySpan>& spans,
                        int64_t window = 0, const ParallelFor& parallel = serial_for) {
    const int64_t width = shape_.heads * shape_.dim;
    Guarded<T> o(q.size());
    paged_attention<T>({q.data(), width}, {o.data(), width}, shape_.heads, kScoreScale, window,
                       spans, layer_, parallel);
    return {o.data(), o.data() + q.size()};
  }

  // A head's keys or values as decoded from the cache: [length, dim].
  std::vector<float> decoded(const Guarded<T>& side, int64_t head) const {
    std::vector<float> all;
    const int64_t kv = shape_.kv_heads * shape_.dim;
    for (int64_t t = 0; t < ssize(side) / kv; ++t) {
      std::vector<float> x;
      for (int64_t i = 0; i < shape_.dim; ++i)
        x.push_back(to_float(side[t * kv + head * shape_.dim + i]));
      const std::vector<float> y = read_back(x, format_);
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }

  void check(int64_t window = 0, const ParallelFor& parallel = serial_for);

  const std::vector<uint8_t>& bytes() const { return arena_; }
  std::vector<std::vector<int32_t>> tables;
  std::vector<Guarded<T>> keys, values;

 private:
  static int64_t ssize(const Guarded<T>& x) { return static_cast<int64_t>(x.size()); }
  std::vector<float> query(const T* q, bool few_rows) const;
  void check_row(const std::vector<float>& q, const std::vector<float>& k,
                 const std::vector<float>& v, int64_t first, int64_t count, const T* o) const;

  ByteShape shape_;
  KvFormat format_;
  std::vector<ByteSequence> sequences_;
  std::vector<uint8_t> arena_;
  ByteKvLayer layer_;
};

// A row of queries as the kernels take it: where few rows are coded as bytes, rounded to 8 bits of
// the largest magnitude.
template <typename T>
std::vector<float> ByteCache<T>::query(const T* q, bool few_rows) const {
  std::vector<float> x;
  for (int64_t d = 0; d < shape_.dim; ++d) x.push_back(to_float(q[d]));
  if (sizeof(T) == 4 || !few_rows || byte_attention(format_).of_bf16.code != RowCode::kBytes)
    return x;
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  const double inverse = 127 / most;  // in float; the products with it are exact in double
  for (float& value : x) value = static_cast<float>(std::nearbyint(value * inverse)) * (most / 127);
  return x;
}

template <typename T>
void ByteCache<T>::check_row(const std::vector<float>& q, const std::vector<float>& k,
                             const std::vector<float>& v, int64_t first, int64_t count,
                             const T* o) const {
  const int64_t dim = shape_.dim;
  std::vector<double> p(count);
  double total = 0;
  for (int64_t t = 0; t < count; ++t) {
    double score = 0;
    for (int64_t d = 0; d < dim; ++d) score += double{q[d]} * k[(first + t) * dim + d];
    total += p[t] = std::exp(kScoreScale * score);
  }
  // bf16: weights and outputs are each rounded by at most 2^-8, or weights to 15 or 16 bits of the
  // largest one.
  const double slack = sizeof(T) == 2 ? 1e-4 : 1e-6,
               relative = sizeof(T) == 2
                              ? 1.0 / 128
                              : 6e-6 * static_cast<double>(std::max<int64_t>(1, dim / 200));
  for (int64_t d = 0; d < dim; ++d) {
    double expected = 0, magnitude = 0;
    for (int64_t t = 0; t < count; ++t) {
      const double term = p[t] / total * v[(first + t) * dim + d];
      expected += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(to_float(o[d]), expected, relative * magnitude + slack)
        << "of " << count << " keys, dimension " << d;
  }
}

template <typename T>
void ByteCache<T>::check(int64_t window, const ParallelFor& parallel) {
  std::vector<QuerySpan> spans;
  int64_t tokens = 0;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const auto& [context, queries, joint] = sequences_[s];
    store(s, {context / 2, context, context + queries}, parallel);
    spans.push_back({tokens, queries, context, tables[s].data(), joint});
    tokens += queries;
  }
  const int64_t width = shape_.heads * shape_.dim, group = shape_.heads / shape_.kv_heads;
  const Guarded<T> random = random_values<T>(tokens * width, 3);
  const std::vector<T> q(random.data(), random.data() + random.size());
  const std::vector<T> o = attend(q, spans, window, parallel);
  for (size_t s = 0; s < sequences_.size(); ++s)
    for (int64_t h = 0; h < shape_.heads; ++h) {
      const std::vector<float> k = decoded(keys[s], h / group), v = decoded(values[s], h / group);
      for (int64_t i = 0; i < sequences_[s].queries; ++i) {
        const int64_t at = (spans[s].begin + i) * width + h * shape_.dim,
                      context = sequences_[s].context;
        const auto [begin, end] = testing_support::attended(
            context + i, context + sequences_[s].queries, window, sequences_[s].joint);
        check_row(query(&q[at], sequences_[s].queries * group <= 16), k, v, begin, end - begin,
                  &o[at]);
        ASSERT_FALSE(::testing::Test::HasFatalFailure())
            << "sequence " << s << " query " << i << " head " << h << " dim " << shape_.dim;
      }
    }
}

void expect_cache(const ByteShape& shape, const std::vector<ByteSequence>& sequences,
                  int64_t window = 0) {
  for (const KvFormat format : kFormats) {
    ByteCache<bf16>(shape, format, sequences).check(window);
    ByteCache<float>(shape, format, sequences).check(window);
  }
}

TEST_P(ByteAttention, MixedDecodesAndChunksMatchReference) {
  for (const ByteShape& shape :
       {ByteShape{6, 2, 20}, {7, 1, 64}, {4, 4, 16}, {2, 2, 7}, {14, 2, 80}, {32, 1, 24}}) {
    expect_cache(shape, {{20, 1}, {0, 9}, {40, 5}, {0, 1}, {15, 1}, {16, 1}, {31, 33}});
    if (HasFatalFailure()) return;
  }
}

TEST_P(ByteAttention, LongSequencesMatchReference) {
  expect_cache({4, 2, 32}, {{0, 150}, {37, 130}});
  expect_cache({4, 2, 16}, {{1500, 1}, {1023, 1}, {1024, 1}, {2047, 2}, {700, 7}, {3, 1}});
}

TEST_P(ByteAttention, WindowsMatchReference) {
  for (const int64_t window : {1, 7, 16, 17, 300}) {
    SCOPED_TRACE(window);
    expect_cache({6, 2, 20}, {{20, 1}, {0, 9}, {40, 5}, {31, 33}}, window);
    expect_cache({4, 2, 16}, {{1023, 1}, {37, 130}, {3, 1}}, window);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ByteAttention, JointRangesAttendBothWays) {
  for (const int64_t window : {0, 7, 40}) {
    SCOPED_TRACE(window);
    expect_cache({6, 2, 20},
                 {{0, 40, {{3, 20}, {20, 33}}}, {25, 30, {{2, 9}, {18, 50}}}, {40, 1, {{4, 30}}}},
                 window);
    expect_cache({4, 2, 16}, {{16, 150, {{17, 160}}}, {600, 7, {{300, 500}, {598, 607}}}}, window);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ByteAttention, ThreadsEqualSerial) {
  for (const KvFormat format : kFormats)
    ByteCache<bf16>({4, 2, 16}, format, {{1500, 1}, {0, 60}, {33, 17}})
        .check(600, testing_support::two_threads);
}

// Many small weights beside a large one, each too small for 8 bits of it, add up to half of the
// output.
TEST_P(ByteAttention, SmallWeightsCount) {
  constexpr int64_t kKeys = 256, kDim = 16;
  for (const KvFormat format : kFormats) {
    ByteCache<bf16> cache({1, 1, kDim}, format, {{kKeys - 1, 1}});
    for (int64_t t = 0; t < kKeys; ++t)
      for (int64_t d = 0; d < kDim; ++d) {
        cache.keys[0][t * kDim + d] = from_float<bf16>(t == 3 ? 1.f : 0.f);
        cache.values[0][t * kDim + d] = from_float<bf16>(t == 3 ? 0.f : 1.f);
      }
    cache.store(0, {kKeys});
    const float score = std::log(255.f) / (kScoreScale * kDim);
    const auto o = cache.attend(std::vector<bf16>(kDim, from_float<bf16>(score)),
                                {{0, 1, kKeys - 1, cache.tables[0].data()}});
    for (const bf16 value : o) EXPECT_NEAR(to_float(value), 0.5f, 0.01f);
  }
}

// Dimensions too large for int32 sums of products with 15-bit queries.
TEST_P(ByteAttention, WideHeadsDoNotOverflow) { expect_cache({2, 1, 1100}, {{40, 1}, {3, 20}}); }

TEST_P(ByteAttention, ResultIndependentOfBatch) {
  for (const KvFormat format : kFormats) {
    ByteCache<bf16> cache({4, 2, 32}, format, {{1099, 1}});
    cache.store(0, {1100});
    const Guarded<bf16> random = random_values<bf16>(3 * 128, 3);
    const std::vector<bf16> q(random.data(), random.data() + 3 * 128);
    const int32_t* table = cache.tables[0].data();
    const auto alone = cache.attend({q.begin(), q.begin() + 128}, {{0, 1, 1099, table}}),
               together =
                   cache.attend(q, {{0, 1, 1099, table}, {1, 1, 40, table}, {2, 1, 700, table}});
    for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(alone[i].bits, together[i].bits) << i;
  }
}

// A token's bytes depend only on its own key and value, not on how the prompt is divided into
// steps, nor on the instruction set.
TEST(KvBytes, IndependentOfPromptSteps) {
  for (const KvFormat format : kFormats) {
    ByteCache<bf16> whole({4, 2, 20}, format, {{0, 75}}), parts({4, 2, 20}, format, {{0, 75}});
    whole.store(0, {75}, testing_support::two_threads);
    parts.store(0, {1, 2, 17, 32, 40, 75});
    EXPECT_EQ(whole.bytes(), parts.bytes());
  }
}

// A non-finite key affects only the sequences that contain it.
TEST_P(ByteAttention, NaNStaysInItsSequence) {
  for (const KvFormat format : kFormats)
    for (const bool in_keys : {true, false})
      for (const int64_t queries : {1, 40}) {
        const int64_t context = 30, width = 2 * 20;
        ByteCache<bf16> cache({2, 1, 20}, format, {{context, queries}, {context, queries}});
        (in_keys ? cache.keys : cache.values)[0][7 * 20 + 3] = from_float<bf16>(kInfinity);
        for (const size_t s : {0, 1}) cache.store(s, {context + queries});
        const Guarded<bf16> random = random_values<bf16>(2 * queries * width, 3);
        const auto o = cache.attend({random.data(), random.data() + random.size()},
                                    {{0, queries, context, cache.tables[0].data()},
                                     {queries, queries, context, cache.tables[1].data()}});
        for (int64_t i = 0; i < queries * width; ++i) {
          ASSERT_TRUE(std::isnan(to_float(o[i]))) << i;
          ASSERT_TRUE(std::isfinite(to_float(o[queries * width + i]))) << i;
        }
      }
}

}  // namespace
}  // namespace valora::kernels
