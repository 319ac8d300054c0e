// Attention against ATen in double precision at odd sizes, on the platforms of ops_test.cc.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kernels/testing/attended.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_targets.h"
#include "ops/attention/run_attention.h"
#include "ops/device/pool_memory.h"
#include "ops/testing/platforms.h"

namespace valora::ops {
namespace {

using namespace testing_support;

struct Rows {
  at::Tensor q, k, v;
};

class OpsAttention : public Ops {
 protected:
  // Adds a sequence's tokens to the cache and attends, this many at a time. expected: of all
  // tokens.
  void expect_in_chunks(const Rows& all, const KvArena& arena, const std::vector<int32_t>& table,
                        const AttentionRule& rule, int64_t chunk, const at::Tensor& expected) {
    const int64_t length = all.q.size(0);
    for (int64_t begin = 0; begin < length; begin += chunk) {
      const int64_t count = std::min(chunk, length - begin);
      const QuerySpan span{0, count, begin, table.data()};
      const auto rows = [&](const at::Tensor& x) { return x.narrow(0, begin, count).contiguous(); };
      expect_close(paged_attention(rows(all.q), rows(all.k), rows(all.v), arena, 1,
                                   std::span(&span, 1), rule),
                   expected.narrow(0, begin, count), 2);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Platforms, OpsAttention, all_platforms(), name_of_platform);

// One sequence's attention in double precision: queries at the end of the keys; each attends to the
// last `window` keys up to its own, and to its joint range.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const AttentionRule& rule = {}, std::span<const PositionRange> joint = {}) {
  const int64_t queries = q.size(0), heads = q.size(1), keys = k.size(0), group = heads / k.size(1);
  const at::Tensor key = wide(k).repeat_interleave(group, 1).permute({1, 2, 0}),
                   value = wide(v).repeat_interleave(group, 1).permute({1, 0, 2});
  at::Tensor scores = at::matmul(wide(q).permute({1, 0, 2}), key);
  if (rule.scale > 0)
    scores = scores * rule.scale;
  else
    scores = scores / std::sqrt(double(q.size(2)));
  const at::Tensor visible = at::empty({queries, keys}, at::kBool);
  auto shown = visible.accessor<bool, 2>();
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      shown[i][j] = kernels::testing_support::attends(keys - queries + i, j, rule.window, joint);
  scores = scores.masked_fill(visible.logical_not(), -INFINITY);
  return at::matmul(at::softmax(scores, -1), value)
      .permute({1, 0, 2})
      .reshape({queries, heads * q.size(2)});
}

TEST_P(OpsAttention, PagedAttentionInChunksEqualsTheWholeSequence) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  for (const auto& [window, scale] :
       {std::pair<int64_t, double>{0, 0}, {1, 0}, {13, 0.7}, {16, 0}}) {
    const AttentionRule rule{.window = window, .scale = scale};
    const at::Tensor expected = attend(q, k, v, rule);
    const std::vector<int32_t> table{6, 1, 4, 3};
    for (const int64_t chunk : {1, 5, 7, 8, 19, 50}) {
      const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
      arena.data().fill_(NAN);  // unwritten slots must not be read
      expect_in_chunks({q, k, v}, arena, table, rule, chunk, expected);
    }
  }
}

// Keys and values that 8 bits represent exactly give the same results however they are chunked.
TEST_P(OpsAttention, PagedAttentionOverEightBitsInChunks) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const KvShape plain{2, kv_heads, dim, dtype()};
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    KvShape shape = plain;
    shape.format = format;
    if (!serves_kv_format(format, dtype(), device())) {
      EXPECT_THROW(KvArena(8, shape, device()), c10::Error);
      continue;
    }
    const int64_t bytes = KvArena::block_bytes(shape, device());
    const int64_t value_bytes = 16 * (on_gpu_kernels() ? 12 : 16);  // in panels on CPUs
    EXPECT_EQ(bytes, 2 * kv_heads * (16 * 12 + value_bytes + 2 * 16 * 2)) << "keys, values, scales";
    const auto exact = [&](int64_t seed) {
      const at::Tensor x = at::randint(-7, 8, {length, kv_heads, dim}, generator_, at::kFloat) / 4;
      x.select(2, seed) = format == KvFormat::kInt8 ? 127.f / 4 : 1.75f;
      return x.to(dtype());
    };
    const at::Tensor q = random({length, heads, dim}) * 0.1, k = exact(1), v = exact(2);
    const AttentionRule rule{.window = format == KvFormat::kInt8 ? 0 : 21};
    const at::Tensor expected = attend(q, k, v, rule);
    const std::vector<int32_t> table{6, 1, 4, 3};
    for (const int64_t chunk : {1, 5, 19, 50}) {
      const PoolMemory pool(8, pool_block_bytes(static_cast<size_t>(bytes), 1), device());
      pool.as(at::kByte).fill_(0xff);
      const KvArena arena(pool, shape, device());
      expect_in_chunks({q, k, v}, arena, table, rule, chunk, expected);
    }
  }
}

TEST_P(OpsAttention, PagedAttentionWithinJointRanges) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 50;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  const std::vector<PositionRange> joint{{2, 7}, {7, 9}, {20, 41}};
  const std::vector<int32_t> table{6, 1, 4, 3};
  for (const int64_t window : {0, 4, 30})
    for (const std::vector<int64_t>& ends :
         std::vector<std::vector<int64_t>>{{50}, {2, 7, 9, 41, 50}, {1, 9, 20, 45, 50}}) {
      const AttentionRule rule{.window = window, .scale = 0.4};
      const at::Tensor expected = attend(q, k, v, rule, joint);
      const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
      arena.data().fill_(NAN);
      int64_t begin = 0;
      for (const int64_t end : ends) {
        const QuerySpan span{0, end - begin, begin, table.data(), joint};
        const auto rows = [&](const at::Tensor& x) { return x.slice(0, begin, end).contiguous(); };
        expect_close(
            paged_attention(rows(q), rows(k), rows(v), arena, 1, std::span(&span, 1), rule),
            expected.slice(0, begin, end), 2);
        begin = end;
      }
    }
  const KvArena arena(8, {2, kv_heads, dim, dtype()}, device());
  const QuerySpan within{0, 30, 0, table.data(), joint};
  const auto part = [&](const at::Tensor& x) { return x.slice(0, 0, 30).contiguous(); };
  EXPECT_THROW(paged_attention(part(q), part(k), part(v), arena, 1, std::span(&within, 1)),
               c10::Error);
}

TEST_P(OpsAttention, SequenceAttentionWithinJointRangesHasGradients) {
  const int64_t heads = 4, kv_heads = 2, dim = 8;
  const std::vector<PositionRange> first{{1, 6}}, second{{0, 3}, {10, 30}};
  for (const auto& lengths : {std::vector<int64_t>{9, 31, 1}, {515, 60}})  // full matrix, blockwise
    for (const int64_t window : {0, 5}) {
      const std::vector<QuerySpan> spans{
          {0, lengths[0], 0, nullptr, first},
          {lengths[0], lengths[1], 0, nullptr, second},
      };
      const int64_t tokens = lengths[0] + lengths[1];
      const AttentionRule rule{.window = window, .scale = 0.4};
      at::Tensor q = random({tokens, heads, dim}).set_requires_grad(true);
      const at::Tensor k = random({tokens, kv_heads, dim}), v = random({tokens, kv_heads, dim});
      const at::Tensor out = sequence_attention(q, k, v, spans, rule);
      out.sum().backward();
      EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
      for (const QuerySpan& s : spans) {
        const auto part = [&](const at::Tensor& x) {
          return x.detach().narrow(0, s.begin, s.queries);
        };
        expect_close(part(out), attend(part(q), part(k), part(v), rule, s.joint), 2);
      }
    }
}

TEST_P(OpsAttention, SequenceAttentionOfSeveralSequencesInWindows) {
  const int64_t heads = 4, kv_heads = 2, dim = 8;
  for (const auto& lengths : {std::vector<int64_t>{9, 30, 1}, {515, 60}})  // full matrix, blockwise
    for (const int64_t window : {0, 1, 8, 29}) {
      std::vector<QuerySpan> spans;
      int64_t tokens = 0;
      for (const int64_t length : lengths)
        spans.push_back({tokens, length, 0, nullptr}), tokens += length;
      at::Tensor q = random({tokens, heads, dim}).set_requires_grad(true);
      const at::Tensor k = random({tokens, kv_heads, dim}), v = random({tokens, kv_heads, dim});
      const at::Tensor out = sequence_attention(q, k, v, spans, {.window = window});
      out.sum().backward();
      EXPECT_TRUE(q.grad().isfinite().all().item<bool>());
      for (const QuerySpan& s : spans) {
        const auto part = [&](const at::Tensor& x) {
          return x.detach().narrow(0, s.begin, s.queries);
        };
        expect_close(part(out), attend(part(q), part(k), part(v), {.window = window}), 2);
      }
    }
}

TEST_P(OpsAttention, PagedAttentionIsTheSameInASharedPool) {
  const int64_t heads = 6, kv_heads = 2, dim = 12, length = 40, layers = 2;
  const at::Tensor q = random({length, heads, dim}), k = random({length, kv_heads, dim}),
                   v = random({length, kv_heads, dim});
  const KvShape shape{layers, kv_heads, dim, dtype()};
  const auto kv_bytes = static_cast<size_t>(KvArena::block_bytes(shape, device()));
  const PoolMemory pool(8, pool_block_bytes(kv_bytes, kv_bytes + 1), device());
  const at::Tensor blocks = pool.as(dtype());
  blocks.fill_(NAN);  // values left by other data must not be read
  const KvArena own(8, shape, device()), shared(pool, shape, device());
  ASSERT_EQ(shared.data().size(0), 8);
  ASSERT_GT(shared.data().stride(0), own.data().stride(0));
  EXPECT_EQ(shared.data().select(0, 5).data_ptr(), pool.block(5));
  const std::vector<int32_t> table{7, 1, 4};
  const QuerySpan spans[] = {{0, 21, 0, table.data()}, {21, 19, 21, table.data()}};
  for (int64_t layer = 0; layer < layers; ++layer)
    for (const QuerySpan& span : spans) {
      const auto attended = [&](const KvArena& arena) {
        const auto rows = [&](const at::Tensor& x) {
          return x.narrow(0, span.begin, span.queries).contiguous();
        };
        const QuerySpan one{0, span.queries, span.context, span.blocks};
        return paged_attention(rows(q), rows(k), rows(v), arena, layer, std::span(&one, 1));
      };
      EXPECT_TRUE(at::equal(attended(shared), attended(own)));
    }
  // Nothing is written between blocks, or to blocks that no table names.
  const int64_t elements = own.data().stride(0);
  for (int32_t block = 0; block < 8; ++block) {
    const bool named = std::ranges::find(table, block) != table.end();
    const int64_t kept = named ? elements : 0;
    EXPECT_TRUE(blocks[block].slice(0, kept).isnan().all().item<bool>());
  }
  EXPECT_THROW(
      KvArena(PoolMemory(8, pool_block_bytes(kv_bytes - 64, 1), device()), shape, device()),
      c10::Error);
}

TEST_P(OpsAttention, PagedAttentionKeepsSequencesApart) {
  const int64_t heads = 4, kv_heads = 4, dim = 8;
  const KvArena arena(8, {1, kv_heads, dim, dtype()}, device());
  const std::vector<std::vector<int32_t>> tables{{5}, {2, 7}, {0}};
  const int64_t lengths[] = {1, 20, 9};
  std::vector<QuerySpan> spans;
  int64_t tokens = 0;
  for (int s = 0; s < 3; ++s) {
    spans.push_back({tokens, lengths[s], 0, tables[s].data()});
    tokens += lengths[s];
  }
  const at::Tensor q = random({tokens, heads, dim}), k = random({tokens, kv_heads, dim}),
                   v = random({tokens, kv_heads, dim});
  const at::Tensor out = paged_attention(q, k, v, arena, 0, spans);
  for (const QuerySpan& s : spans) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, s.begin, s.queries); };
    expect_close(part(out), attend(part(q), part(k), part(v)), 2);
  }
}

TEST_P(OpsAttention, RunAttentionStaysWithinRuns) {
  const at::Tensor q = random({9, 2, 8}), k = random({9, 2, 8}), v = random({9, 2, 8});
  const std::vector<int64_t> ends{2, 4, 6, 7, 9};  // runs of equal length in a row, and others
  RunAttention attention(ends, 2, 8, dtype(), device());
  attention.store(k.slice(0, 0, 3), v.slice(0, 0, 3));
  EXPECT_THROW(attention.attend(0, q), c10::Error);  // some rows are not stored yet
  attention.store(k.slice(0, 3), v.slice(0, 3));
  EXPECT_THROW(attention.store(k, v), c10::Error);
  EXPECT_THROW(attention.attend(1, q), c10::Error);
  const at::Tensor whole = attention.attend(0, q);
  const at::Tensor parts =
      at::cat({attention.attend(0, q.slice(0, 0, 1)), attention.attend(1, q.slice(0, 1, 8)),
               attention.attend(8, q.slice(0, 8))});
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 2}, {2, 4}, {4, 6}, {6, 7}, {7, 9}}) {
    const auto part = [&, begin = begin, end = end](const at::Tensor& x) {
      return wide(x).slice(0, begin, end).permute({1, 0, 2});
    };
    const at::Tensor weights =
        at::softmax(at::matmul(part(q), part(k).transpose(1, 2)) / std::sqrt(8.0), -1);
    const at::Tensor expected =
        at::matmul(weights, part(v)).permute({1, 0, 2}).reshape({end - begin, 16});
    expect_close(whole.slice(0, begin, end), expected, 2);
    expect_close(parts.slice(0, begin, end), expected, 2);
  }
}

TEST_P(OpsAttention, RunAttentionSplitsProductsAtAnySize) {
  const at::Tensor q = random({30, 2, 8}), kv = random({2, 30, 2, 8});
  const kernels::Runs runs({4, 8, 12, 25, 30});
  const auto attend = [&](int64_t begin, int64_t end, int64_t most_scores) {
    return attend_runs_aten(q.slice(0, begin, end), begin, runs, kv, most_scores);
  };
  const at::Tensor whole = attend(0, 30, kMostScores);
  // Limits that allow: one query, parts of a run, two runs of three, everything.
  for (const int64_t most_scores : {1, 2 * 13, 5 * 2 * 13, 2 * 2 * 4 * 4, 1000}) {
    expect_close(attend(0, 30, most_scores), wide(whole), 2);
    expect_close(attend(3, 21, most_scores), wide(whole.slice(0, 3, 21)), 2);
  }
}

}  // namespace
}  // namespace valora::ops
