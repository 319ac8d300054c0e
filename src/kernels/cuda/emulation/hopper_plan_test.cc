// The plan of prompts for FlashInfer's FA3 kernels.
#include "kernels/cuda/attention/hopper_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace valora::kernels::cuda {
namespace {

AttentionShape hopper_shape(int heads, int kv_heads, int dim, int multiprocessors = 132) {
  return {heads, kv_heads, dim, Dtype::kBf16, true, multiprocessors, 227 << 10, true, true};
}

// Spans of (queries, context) with a row between them, and blocks 0, 1, … one after the other.
struct HopperStep {
  explicit HopperStep(const std::vector<std::pair<int64_t, int64_t>>& lengths) : blocks(2000) {
    std::iota(blocks.begin(), blocks.end(), 0);
    size_t next = 0;
    for (const auto& [queries, context] : lengths) {
      spans.push_back({tokens, queries, context, blocks.data() + next});
      next += static_cast<size_t>((queries + context + kBlockTokens - 1) / kBlockTokens);
      tokens += queries + 1;
    }
  }
  AttentionPlan plan(const AttentionShape& shape) const {
    return plan_attention(shape, spans.data(), spans.size(), tokens);
  }
  std::vector<int32_t> blocks;
  std::vector<QuerySpan> spans;
  int64_t tokens = 0;
};

using Arrays = HopperArrays<const int32_t>;

// What the items of a list need to know of their prompt is that of a span; → its index.
int span_of(const HopperStep& step, const AttentionPlan& plan, const Arrays& items, int item) {
  for (size_t i = 0; i < step.spans.size(); ++i) {
    const QuerySpan& span = step.spans[i];
    if (span.begin != items.begins[item]) continue;
    EXPECT_EQ(items.queries[item], span.queries);
    EXPECT_EQ(items.keys[item], span.context + span.queries);
    EXPECT_EQ(plan.block_tables[items.blocks[item]], span.blocks[0]);
    return static_cast<int>(i);
  }
  ADD_FAILURE() << "an item of no span";
  return -1;
}

TEST(HopperPlans, CoverEachTileOfEachHeadOnce) {
  const HopperStep step({{1, 40}, {700, 300}, {2, 9}, {129, 0}, {1300, 16}, {17, 2000}});
  for (const int dim : {64, 128, 256})
    for (const int multiprocessors : {20, 132}) {
      const AttentionShape shape = hopper_shape(28, 4, dim, multiprocessors);
      const AttentionPlan plan = step.plan(shape);
      const PromptSizes& sizes = plan.sizes.prompts;
      ASSERT_EQ(sizes.lists, multiprocessors);
      ASSERT_EQ(plan.prompts.size(), hopper_array_length(sizes));
      const Arrays items = hopper_arrays(plan.prompts.data(), sizes);
      EXPECT_EQ(items.lists[0], 0);
      EXPECT_EQ(items.lists[sizes.lists], sizes.items);
      std::set<std::tuple<int, int, int>> met;
      for (int i = 0; i < sizes.items; ++i)
        EXPECT_TRUE(
            met.insert({span_of(step, plan, items, i), items.tiles[i], items.heads[i]}).second);
      size_t wanted = 0;
      for (size_t i = 0; i < step.spans.size(); ++i) {
        if (step.spans[i].queries <= decode_queries(shape)) continue;
        const int64_t rows = hopper_queries(dim), tiles = (step.spans[i].queries + rows - 1) / rows;
        for (int64_t tile = 0; tile < tiles; ++tile)
          for (int head = 0; head < 28; ++head, ++wanted)
            EXPECT_TRUE(met.contains({static_cast<int>(i), static_cast<int>(tile), head}));
      }
      EXPECT_EQ(met.size(), wanted);
    }
}

// No list has more than the mean and one item.
TEST(HopperPlans, ListsHaveEqualWork) {
  const HopperStep step({{1700, 300}, {129, 0}, {900, 16}, {170, 6000}});
  const AttentionPlan plan = step.plan(hopper_shape(28, 4, 128));
  const PromptSizes& sizes = plan.sizes.prompts;
  ASSERT_GT(sizes.lists, 0);
  const Arrays items = hopper_arrays(plan.prompts.data(), sizes);
  int64_t total = 0, most = 0, largest = 0;
  for (int list = 0; list < sizes.lists; ++list) {
    int64_t load = 0;
    for (int i = items.lists[list]; i < items.lists[list + 1]; ++i) {
      const int64_t seen = std::min(items.queries[i], (items.tiles[i] + 1) * 128);
      const int64_t keys = items.keys[i] - items.queries[i] + seen + 256;
      load += keys, largest = std::max(largest, keys);
    }
    EXPECT_GT(load, 0);
    total += load, most = std::max(most, load);
  }
  EXPECT_LE(most, total / sizes.lists + largest);
}

TEST(HopperPlans, AreForMuchWorkOnHoppers) {
  const HopperStep much({{2000, 0}}), little({{300, 4000}});
  const AttentionShape shape = hopper_shape(28, 4, 128);
  EXPECT_GT(much.plan(shape).sizes.prompts.lists, 0);
  EXPECT_EQ(much.plan(shape).sizes.prompts.part_rows, 0);
  const PromptSizes few = little.plan(shape).sizes.prompts;
  EXPECT_EQ(few.lists, 0) << "3 tiles of 28 heads for 132 multiprocessors";
  EXPECT_GT(few.part_rows, 0) << "FA2 with parts of the keys";
  AttentionShape other = shape;
  other.hopper = false;
  EXPECT_EQ(much.plan(other).sizes.prompts.lists, 0);
  EXPECT_GT(much.plan(other).sizes.prompts.items, 0);
  other = shape, other.flashinfer = false;
  EXPECT_EQ(much.plan(other).sizes.prompts.items, 0);
  const AttentionBounds bounds{.tokens = 512, .other_spans = 1};
  EXPECT_EQ(bounded_attention_sizes(hopper_shape(64, 8, 128, 16), bounds).prompts.lists, 0)
      << "captured steps are FA2's";
}

}  // namespace
}  // namespace valora::kernels::cuda
