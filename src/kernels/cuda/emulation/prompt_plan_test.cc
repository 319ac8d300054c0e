// The plan of prompts for FlashInfer's kernels: what its thread blocks would compute, by brute
// force.
#include "kernels/cuda/attention/prompt_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace valora::kernels::cuda {
namespace {

struct Span {
  int64_t queries, context;
};

// Spans one after the other, with a row between them that belongs to none, and blocks of their own.
struct Step {
  explicit Step(const std::vector<Span>& lengths) {
    for (const Span& span : lengths) {
      blocks.emplace_back((span.context + span.queries + kBlockTokens - 1) / kBlockTokens);
      std::iota(blocks.back().begin(), blocks.back().end(), next_block);
      next_block += static_cast<int32_t>(blocks.back().size());
      spans.push_back({tokens, span.queries, span.context, blocks.back().data()});
      tokens += span.queries + 1;
    }
  }
  std::vector<std::vector<int32_t>> blocks;
  std::vector<QuerySpan> spans;
  int64_t tokens = 0;
  int32_t next_block = 0;
};

AttentionShape shape_of(int group, int kv_heads, int dim, int multiprocessors = 132) {
  return {group * kv_heads, kv_heads, dim, Dtype::kBf16, true, multiprocessors, 227 << 10, true};
}

// What an item of the plan reads and writes, as FlashInfer's kernels take it.
class Reader {
 public:
  Reader(const AttentionShape& shape, const AttentionPlan& plan)
      : sizes_(plan.sizes.prompts),
        plan_(prompt_arrays(plan.prompts.data(), plan.sizes.prompts)),
        group_(shape.heads / shape.kv_heads),
        tile_rows_(split() ? kSplitPromptRows : whole_prompt_rows(shape.dim)) {}

  bool split() const { return sizes_.part_rows > 0; }
  bool used(int item) const { return reinterpret_cast<const bool*>(plan_.used)[item]; }
  int part_keys() const { return *plan_.part_keys; }

  // Calls body(token, head of the group, position, keys from, keys to, row of the results) for each
  // row of an item.
  template <typename Body>
  void each_row(int item, const Body& body) const {
    const int entry = plan_.requests[item], begin = plan_.queries[entry];
    const int queries = plan_.queries[entry + 1] - begin, keys = keys_of(entry);
    for (int row = 0; row < tile_rows_; ++row) {
      const int packed = plan_.query_tiles[item] * tile_rows_ + row, query = packed / group_;
      if (query >= queries) break;
      const int position = keys - queries + query, part = plan_.key_tiles[item];
      const int from = split() ? part * part_keys() : 0;
      const int to = split() ? std::min(position + 1, from + part_keys()) : position + 1;
      const int parts = split() ? (keys + part_keys() - 1) / part_keys() : 1;
      body(begin + query, packed % group_, position, from, std::max(from, to),
           plan_.outputs[entry] + query * parts + part);
    }
  }
  int keys_of(int entry) const {
    return (plan_.blocks[entry + 1] - plan_.blocks[entry] - 1) * static_cast<int>(kBlockTokens) +
           plan_.last_tokens[entry];
  }
  // The index in the block tables of the block of a key of an item.
  int block_of(int item, int key) const {
    return plan_.blocks[plan_.requests[item]] + key / static_cast<int>(kBlockTokens);
  }
  int last_block() const { return plan_.blocks[2 * sizes_.requests]; }
  PromptRow row_of(int64_t token) const {
    return {plan_.rows[2 * token], plan_.rows[2 * token + 1]};
  }

 private:
  PromptSizes sizes_;
  PromptArrays<const int32_t> plan_;
  int group_, tile_rows_;
};

// Each query of a prompt meets each of its keys exactly once, in its own blocks, and what is
// computed for it is where it is merged.
void check(const AttentionShape& shape, const Step& step, const AttentionPlan& plan,
           const std::string& name) {
  const PromptSizes& sizes = plan.sizes.prompts;
  ASSERT_EQ(plan.prompts.size(), prompt_array_length(sizes, plan.sizes.tokens)) << name;
  const Reader reader(shape, plan);
  std::map<std::pair<int64_t, int>, std::vector<int>> met;  // (token, head) → times per key
  std::map<std::pair<int64_t, int>, std::vector<int>> results;
  for (int item = 0; item < sizes.items; ++item) {
    if (!reader.used(item)) continue;
    reader.each_row(item, [&](int token, int head, int position, int from, int to, int result) {
      auto& keys = met[{token, head}];
      keys.resize(position + 1);
      const QuerySpan* span = nullptr;
      for (const QuerySpan& s : step.spans)
        if (s.begin <= token && token < s.begin + s.queries) span = &s;
      ASSERT_TRUE(span) << name << ": a row of no span";
      EXPECT_EQ(span->context + token - span->begin, position) << name;
      for (int key = from; key < to; ++key) {
        ++keys[key];
        const int index = reader.block_of(item, key);
        ASSERT_LT(index, reader.last_block()) << name;
        ASSERT_EQ(plan.block_tables[index], span->blocks[key / kBlockTokens]) << name;
      }
      if (from < to) results[{token, head}].push_back(result);
    });
  }
  size_t queries = 0;
  std::map<int, int64_t> owners;  // of rows of the workspace
  for (const QuerySpan& span : step.spans) {
    if (span.queries <= decode_queries(shape)) continue;
    for (int64_t token = span.begin; token < span.begin + span.queries; ++token)
      for (int head = 0; head < shape.heads / shape.kv_heads; ++head, ++queries) {
        const auto& keys = met[{token, head}];
        ASSERT_EQ(keys.size(), static_cast<size_t>(span.context + token - span.begin + 1)) << name;
        ASSERT_TRUE(std::ranges::all_of(keys, [](int times) { return times == 1; })) << name;
        std::vector<int> wanted{static_cast<int>(token)};
        if (reader.split()) {
          const PromptRow row = reader.row_of(token);
          wanted.resize(row.parts);
          std::iota(wanted.begin(), wanted.end(), row.first);
          ASSERT_LE(row.first + row.parts, sizes.part_rows) << name;
          for (const int at : wanted) ASSERT_EQ(owners.try_emplace(at, token).first->second, token);
        }
        std::ranges::sort(results[{token, head}]);
        ASSERT_EQ((results[{token, head}]), wanted) << name;
      }
  }
  EXPECT_EQ(met.size(), queries) << name << ": rows of decodes";
  if (!reader.split()) return;
  int64_t prompt_rows = 0;
  for (int64_t token = 0; token < plan.sizes.tokens; ++token)
    prompt_rows += reader.row_of(token).parts > 0 ? 1 : 0;
  EXPECT_EQ(prompt_rows * shape.heads / shape.kv_heads, static_cast<int64_t>(queries)) << name;
}

struct Lengths {
  const char* name;
  std::vector<Span> spans;
};

TEST(PromptPlans, CoverEachQueryAndKeyOnce) {
  const Lengths steps[] = {{"one prompt", {{300, 0}}},
                           {"a question after a long prefix", {{20, 4096}}},
                           {"between decodes", {{1, 50}, {40, 700}, {1, 9}, {17, 0}, {2, 300}}},
                           {"a chunk", {{512, 1024}, {33, 16}}},
                           {"a tile that ends with the first key of a part", {{200, 321}}},
                           {"whole blocks", {{32, 480}, {16, 0}, {64, 64}}}};
  int split = 0, whole = 0;
  for (const auto& [name, lengths] : steps)
    for (const int group : {1, 3, 4, 7, 12})
      for (const int dim : {64, 128, 256})
        for (const int multiprocessors : {8, 132}) {
          const AttentionShape shape = shape_of(group, 2, dim, multiprocessors);
          const Step step(lengths);
          const AttentionPlan plan =
              plan_attention(shape, step.spans.data(), step.spans.size(), step.tokens);
          if (std::ranges::all_of(lengths, [&](const Span& span) {
                return span.queries <= decode_queries(shape);
              })) {
            EXPECT_EQ(plan.sizes.prompts.items, 0);
            continue;
          }
          check(shape, step, plan, name);
          ++(plan.sizes.prompts.part_rows > 0 ? split : whole);
        }
  EXPECT_GT(split, 20);
  EXPECT_GT(whole, 20);
}

TEST(PromptPlans, SplitKeysWhereMultiprocessorsWouldWait) {
  const auto plan = [](int64_t queries, int64_t context) {
    const Step step({{queries, context}});
    return plan_attention(shape_of(7, 4, 128), step.spans.data(), 1, step.tokens).sizes.prompts;
  };
  const PromptSizes question = plan(20, 4096), prompt = plan(8192, 0), start = plan(100, 0);
  EXPECT_GT(question.items, 20) << "2 tiles of 4 KV heads for 132 multiprocessors";
  EXPECT_LE(question.items * 4, 2 * 132);
  EXPECT_GT(question.part_rows, 20 * 8);
  EXPECT_EQ(prompt.part_rows, 0);
  EXPECT_EQ(prompt.items, 8192 * 7 / 128);
  EXPECT_EQ(start.part_rows, 0) << "parts of fewer than 128 keys do not pay";
}

// A step with many spans that are a query longer than a whole tile or a decode, and long contexts.
std::vector<Span> random_lengths(std::mt19937& random, const AttentionShape& shape) {
  const int most = decode_queries(shape), tile = 128 / (shape.heads / shape.kv_heads);
  std::vector<Span> spans(1 + random() % 8);
  for (Span& span : spans) {
    const int lengths[] = {1, most + 1, tile + 1, 1 + static_cast<int>(random() % 90)};
    span = {lengths[random() % 4], static_cast<int64_t>(random() % (random() % 4 ? 300 : 3000))};
  }
  return spans;
}

TEST(PromptPlans, FitTheirBounds) {
  std::mt19937 random(5);
  int split = 0, tight = 0;
  for (const int group : {1, 2, 5, 7, 16})
    for (const int kv_heads : {1, 2, 8})
      for (int i = 0; i < 12; ++i) {
        const AttentionShape shape = shape_of(group, kv_heads, i % 3 ? 128 : 256, i % 2 ? 132 : 16);
        const std::vector<Span> lengths = random_lengths(random, shape);
        const Step step(lengths);
        AttentionBounds bounds;
        bounds.tokens = static_cast<int32_t>(step.tokens) + 3;
        bounds.decode_queries = decode_queries(shape);
        bounds.longest = 4000;
        for (const Span& span : lengths)
          ++(span.queries > decode_queries(shape) ? bounds.other_spans : bounds.decode_spans);
        const AttentionSizes sizes = bounded_attention_sizes(shape, bounds);
        const auto plan = plan_bounded_attention(shape, sizes, step.spans.data(), lengths.size());
        ASSERT_TRUE(plan) << group << " " << kv_heads << " " << i;
        EXPECT_EQ(plan->sizes.prompts.items, sizes.prompts.items);
        if (bounds.other_spans == 0) continue;
        check(shape, step, *plan, "bounded");
        split += sizes.prompts.part_rows > 0 ? 1 : 0;
        AttentionSizes fewer = sizes;
        --fewer.prompts.requests;
        EXPECT_FALSE(plan_bounded_attention(shape, fewer, step.spans.data(), lengths.size()));
        fewer = sizes, fewer.prompts.items = 1, fewer.prompts.part_rows = 0;
        tight += plan_bounded_attention(shape, fewer, step.spans.data(), lengths.size()) ? 0 : 1;
      }
  EXPECT_GT(split, 50);
  EXPECT_GT(tight, 50);
}

TEST(PromptPlans, StepsOfAShapeShareAWorkspaceOfBoundedSize) {
  const AttentionShape shape = shape_of(4, 8, 128);
  std::set<size_t> bytes;
  for (const int tokens : {16, 64, 200, 512})
    for (const int prompts : {1, 8, 64}) {
      AttentionBounds bounds{.tokens = tokens, .other_spans = prompts};
      bytes.insert(prompt_workspace_bytes(bounded_attention_sizes(shape, bounds), 32, 128));
    }
  EXPECT_LE(bytes.size(), 2u) << "none for steps with much work, or one size";
  EXPECT_LT(*bytes.rbegin(), 20u << 20);
  const Step step({{90, 30'000}, {90, 30'000}, {90, 30'000}});
  const AttentionPlan plan =
      plan_attention(shape, step.spans.data(), step.spans.size(), step.tokens);
  EXPECT_GT(prompt_workspace_bytes(plan.sizes, 32, 128), 0u);
  EXPECT_LE(prompt_workspace_bytes(plan.sizes, 32, 128), *bytes.rbegin());
}

TEST(PromptPlans, AreForHeadsThatFlashInferHas) {
  const auto taken = [](int dim, Dtype dtype, bool aligned, bool asked) {
    AttentionShape shape = shape_of(2, 2, dim);
    shape.dtype = dtype, shape.aligned = aligned, shape.flashinfer = asked;
    const Step step({{300, 20}});
    const AttentionPlan plan = plan_attention(shape, step.spans.data(), 1, step.tokens);
    EXPECT_EQ(plan.sizes.prompts.items > 0, flashinfer_takes(shape));
    EXPECT_EQ(plan.prompts.empty(), plan.sizes.prompts.items == 0);
    EXPECT_FALSE(plan.tiles.empty()) << "for layers with a window";
    return plan.sizes.prompts.items > 0;
  };
  for (const int dim : {64, 128, 256})
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16})
      EXPECT_TRUE(taken(dim, dtype, true, true)) << dim;
  for (const int dim : {32, 80, 96, 112, 192}) EXPECT_FALSE(taken(dim, Dtype::kBf16, true, true));
  EXPECT_FALSE(taken(128, Dtype::kFloat, true, true));
  EXPECT_FALSE(taken(128, Dtype::kBf16, false, true));
  EXPECT_FALSE(taken(128, Dtype::kBf16, true, false));
}

TEST(PromptPlans, JointQueriesAreOurs) {
  Step step({{300, 20}});
  const std::vector<PositionRange> joint{{40, 60}};
  step.spans[0].joint = joint;
  const AttentionPlan plan = plan_attention(shape_of(2, 2, 128), step.spans.data(), 1, step.tokens);
  EXPECT_EQ(plan.sizes.prompts.items, 0);
  AttentionBounds bounds{.tokens = 400, .other_spans = 1, .joint = true};
  EXPECT_EQ(bounded_attention_sizes(shape_of(2, 2, 128), bounds).prompts.items, 0);
}

}  // namespace
}  // namespace valora::kernels::cuda
