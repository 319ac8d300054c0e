// Which kernels the plans choose on which GPU, by which shapes the tiles of low-rank products are
// chosen, and the bounds of captured steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulation/machine.h"
#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {
namespace {

AttentionKernels kernels_on(int capability, int dim) {
  emulation::choose_gpu(capability);
  const AttentionShape shape{28, 4, dim, Dtype::kBf16, true, multiprocessors(), shared_bytes()};
  const AttentionKernels kernels = attention_kernels(shape);
  EXPECT_EQ(decode_fits(shape), kernels == AttentionKernels::kTensorCores);
  emulation::machine() = {};
  return kernels;
}

TEST(AttentionPlans, EveryGpuUsesTensorCoresForHeadsOf128) {
  for (const int capability : {80, 86, 89, 90, 120})
    for (const int dim : {64, 80, 96, 112, 128})
      EXPECT_EQ(kernels_on(capability, dim), AttentionKernels::kTensorCores)
          << capability << " " << dim;
}

TEST(AttentionPlans, HeadsOf256NeedServerSharedMemory) {
  for (const int capability : {80, 90})
    EXPECT_EQ(kernels_on(capability, 256), AttentionKernels::kTensorCores);
  for (const int capability : {86, 89, 120})
    EXPECT_EQ(kernels_on(capability, 256), AttentionKernels::kPlain);
}

// The shapes that the tile table was asked for.
std::vector<ProductShape>& asked() {
  static std::vector<ProductShape> shapes;
  return shapes;
}
CudaTile answer(const ProductShape& shape) {
  asked().push_back(shape);
  return is_shrink(shape.kind) ? CudaTile{8, 4, 4, 2} : CudaTile{64, 2, 1, 1};
}

LoraTiles tiles_of(const std::vector<DeviceLoraSegment>& segments) {
  asked().clear();
  LoraCall call;
  call.in = 3584;
  call.slices[0].out = 3584, call.slices[1].out = 512, call.slice_count = 2;
  call.max_rank = 16;
  call.sizes = plan_lora(segments.data(), segments.size()).sizes;
  return choose_lora_tiles(call, CudaArch::kSm90, answer);
}

TEST(LoraPlans, ChooseTilesByLaunchShape) {
  const LoraTiles tiles = tiles_of({{0, 1, 0, 1, nullptr}, {1, 21, 0, 1, nullptr}});
  EXPECT_EQ(tiles.shrink, (CudaTile{8, 4, 4, 2}));
  EXPECT_EQ(tiles.expand, (CudaTile{64, 2, 1, 1}));
  ASSERT_EQ(asked().size(), 2u);
  EXPECT_EQ(asked()[0], (ProductShape{ProductKind::kShrink, false, CudaArch::kSm90, 3, 32, 3584}))
      << "one token, and 20 in tiles of 16; the ranks of two linears";
  EXPECT_EQ(asked()[1], (ProductShape{ProductKind::kExpand, false, CudaArch::kSm90, 3, 4096, 16}));
}

TEST(LoraPlans, ChooseLongTilesForLongSegment) {
  tiles_of({{0, 65, 0, 1, nullptr}});
  ASSERT_EQ(asked().size(), 2u);
  EXPECT_EQ(asked()[0],
            (ProductShape{ProductKind::kLongShrink, false, CudaArch::kSm90, 3, 32, 3584}));
  EXPECT_EQ(asked()[1].kind, ProductKind::kLongExpand);
}

struct RandomStep {
  std::vector<QuerySpan> spans;
  std::vector<int32_t> blocks = std::vector<int32_t>(200);
  AttentionBounds bounds;  // as tight as possible
};

// The worst case for the bounds on tiles: many spans that are one query longer than a whole tile or
// a decode.
RandomStep random_step(const AttentionShape& shape, std::mt19937& random) {
  RandomStep step;
  const int32_t most = decode_queries(shape);
  const int32_t tile = (shape.dim <= 128 ? 128 : 64) / (shape.heads / shape.kv_heads);
  step.bounds.decode_queries = most;
  const auto count = 1 + random() % 12;
  for (size_t i = 0; i < count; ++i) {
    const int64_t lengths[] = {1,    most,     most + 1,
                               tile, tile + 1, 1 + static_cast<int>(random() % 60)};
    const int64_t queries = lengths[random() % 6], context = static_cast<int64_t>(random() % 1000);
    step.spans.push_back({step.bounds.tokens, queries, context, step.blocks.data()});
    step.bounds.tokens += static_cast<int32_t>(queries);
    if (queries > most) {
      ++step.bounds.other_spans;
      continue;
    }
    ++step.bounds.decode_spans;
    step.bounds.longest = std::max(step.bounds.longest, static_cast<int32_t>(context + queries));
  }
  return step;
}

TEST(AttentionPlans, FitTightestBounds) {
  std::mt19937 random(11);
  int tiles = 0;
  for (const int group : {1, 2, 3, 5, 7, 9, 12, 13, 16})
    for (const int dim : {64, 128, 256})
      for (int i = 0; i < 100; ++i) {
        const AttentionShape shape{2 * group, 2, dim};
        const RandomStep step = random_step(shape, random);
        const AttentionSizes sizes = bounded_attention_sizes(shape, step.bounds);
        const auto plan = [&](const AttentionSizes& within) {
          return plan_bounded_attention(shape, within, step.spans.data(), step.spans.size());
        };
        const auto whole = plan(sizes);
        ASSERT_TRUE(whole) << group << " " << dim << " case " << i;
        EXPECT_EQ(whole->spans.size(),
                  static_cast<size_t>(sizes.decode_spans) + static_cast<size_t>(sizes.tiles));
        EXPECT_EQ(whole->tiles.size(), static_cast<size_t>(sizes.tiles));
        tiles += sizes.tiles;
        for (int32_t AttentionSizes::* bound :
             {&AttentionSizes::tokens, &AttentionSizes::decode_spans, &AttentionSizes::longest}) {
          AttentionSizes narrower = sizes;
          if (--(narrower.*bound) >= 0) {
            EXPECT_FALSE(plan(narrower));
          }
        }
      }
  EXPECT_GT(tiles, 10'000);
}

TEST(AttentionPlans, JointQueriesHaveATableOfEnds) {
  const AttentionShape shape{4, 2, 64};
  const std::vector<int32_t> blocks(10);
  const std::vector<PositionRange> joint{{3, 9}, {20, 25}};
  const auto plan = [&](int64_t context, int64_t queries) {
    const QuerySpan span{1, queries, context, blocks.data(), joint};
    return plan_attention(shape, &span, 1, 1 + queries);
  };
  EXPECT_TRUE(plan(9, 11).ends.empty()) << "between the ranges";
  EXPECT_EQ(plan(8, 2).ends, (std::vector<int32_t>{0, 9, 10}));
  EXPECT_EQ(plan(0, 5 + 5).ends, (std::vector<int32_t>{0, 1, 2, 3, 9, 9, 9, 9, 9, 9, 10}));
  const QuerySpan within{0, 5, 20, blocks.data(), joint}, beyond{0, 5, 30, blocks.data(), joint};
  AttentionBounds bounds{.tokens = 6, .decode_spans = 1, .decode_queries = 8, .longest = 64};
  const auto bounded = [&](const QuerySpan& span) {
    return plan_bounded_attention(shape, bounded_attention_sizes(shape, bounds), &span, 1);
  };
  EXPECT_TRUE(bounded(beyond) && bounded(beyond)->ends.empty());
  EXPECT_FALSE(bounded(within)) << "bounds without a table";
  bounds.joint = true;
  EXPECT_EQ(bounded(within).value().ends, (std::vector<int32_t>{25, 25, 25, 25, 25, 0}));
  EXPECT_EQ(bounded(beyond).value().ends, (std::vector<int32_t>{31, 32, 33, 34, 35, 0}));
}

TEST(AttentionPlans, WindowsNeedNoMorePartsThanTheStep) {
  std::mt19937 random(17);
  int fewer = 0;
  for (const int group : {1, 3, 7, 16})
    for (const int decodes : {1, 9, 200})
      for (const int longest : {5, 700, 9000})
        for (const int64_t window : {0, 1, 16, 500, 1024, 20000}) {
          const AttentionShape shape{2 * group, 2, 128};
          AttentionBounds bounds;
          bounds.decode_spans = bounds.tokens = decodes;
          bounds.decode_queries = 1 + static_cast<int32_t>(random() % (16 / group));
          bounds.longest = longest;
          const AttentionSizes sizes = bounded_attention_sizes(shape, bounds);
          const AttentionSizes inner = sizes_in_window(shape, sizes, window);
          EXPECT_LE(inner.splits(), sizes.splits());
          EXPECT_LE(attention_workspace_bytes(inner, 2, 128),
                    attention_workspace_bytes(sizes, 2, 128));
          EXPECT_LE(attention_counters(inner, 2), attention_counters(sizes, 2));
          EXPECT_EQ(inner.split_keys % 64, 0);
          // Its keys are read in whole blocks, from the first of a query's window on.
          for (int64_t context = 0; context + bounds.decode_queries <= longest; ++context) {
            const int64_t first = first_visible(context, window) / kBlockTokens * kBlockTokens;
            ASSERT_LE(context + bounds.decode_queries - first, inner.longest);
          }
          fewer += inner.longest < sizes.longest ? 1 : 0;
        }
  EXPECT_GT(fewer, 40);
}

// Covered tiles come first.
void expect_each_token_once(const LoraPlan& plan, int32_t tokens) {
  std::vector<int> times(static_cast<size_t>(tokens));
  for (size_t i = 0; i < plan.expand_tiles.size(); ++i) {
    const LoraExpandTile& tile = plan.expand_tiles[i];
    EXPECT_EQ(tile.covers > 0, i < static_cast<size_t>(plan.sizes.expand_tiles));
    for (int32_t t = 0; t < tile.tokens; ++t) ++times.at(tile.token_begin + t);
  }
  EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; }));
}

TEST(LoraPlans, CoverAllTokens) {
  const std::vector<DeviceLoraSegment> segments = {{5, 8, 0, 1, nullptr}, {40, 41, 0, 1, nullptr}};
  const LoraPlan plan = plan_lora(segments.data(), segments.size(), false, 60);
  EXPECT_EQ(plan.sizes.expand_tiles, 2);
  EXPECT_EQ(plan.sizes.all_tiles, 2 + 1 + 2 + 2) << "5 tokens, 32, and 19 in tiles of 16";
  expect_each_token_once(plan, 60);
  EXPECT_EQ(plan_lora(segments.data(), segments.size()).sizes.all_tiles, 2) << "tokens not known";
}

TEST(LoraPlans, FitTightestBounds) {
  std::mt19937 random(13);
  for (int i = 0; i < 2000; ++i) {
    const bool wide = random() % 2 == 0;
    LoraBounds bounds{.tokens = static_cast<int32_t>(1 + random() % 200)};
    std::vector<DeviceLoraSegment> segments(1 + random() % 20);
    std::set<int32_t> cuts;
    for (DeviceLoraSegment& s : segments) {
      const auto begin = static_cast<int32_t>(random() % bounds.tokens);
      const auto longest = static_cast<uint32_t>(std::min(bounds.tokens - begin, 64));
      s.token_begin = begin, s.token_end = begin + 1 + static_cast<int32_t>(random() % longest);
      cuts.insert({s.token_begin, s.token_end});
      bounds.rows += s.token_end - s.token_begin;
    }
    bounds.segments = static_cast<int32_t>(segments.size());
    bounds.ranges = static_cast<int32_t>(cuts.size()) - 1;
    bounds.tile_tokens = wide ? kWideLoraTile : kNarrowLoraTile;
    LoraPlan plan = plan_lora(segments.data(), segments.size(), wide, bounds.tokens), other = plan;
    expect_each_token_once(plan, bounds.tokens);
    const LoraSizes sizes = bounded_lora_sizes(bounds);
    ASSERT_TRUE(bound_lora_plan(sizes, plan)) << "case " << i;
    EXPECT_EQ(plan.shrink_tiles.size(), static_cast<size_t>(sizes.shrink_tiles));
    EXPECT_EQ(plan.expand_tiles.size(), static_cast<size_t>(sizes.all_tiles));
    bounds.tile_tokens = wide ? kNarrowLoraTile : kWideLoraTile;
    EXPECT_FALSE(bound_lora_plan(bounded_lora_sizes(bounds), other)) << "tiles of another width";
  }
}

}  // namespace
}  // namespace valora::kernels::cuda
