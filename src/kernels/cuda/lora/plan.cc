#include <algorithm>

#include "kernels/cuda/lora.h"

namespace valora::kernels::cuda {
namespace {

constexpr int32_t kNarrow = kNarrowLoraTile, kWide = kWideLoraTile;

void add_expand_tiles(LoraPlan& plan, int32_t begin, int32_t end,
                      const std::vector<int32_t>& covering) {
  const auto first = static_cast<int32_t>(plan.covers.size());
  plan.covers.insert(plan.covers.end(), covering.begin(), covering.end());
  std::sort(plan.covers.begin() + first, plan.covers.end());
  for (int32_t token = begin; token < end; token += plan.sizes.tile_tokens)
    plan.expand_tiles.push_back({token, std::min(plan.sizes.tile_tokens, end - token), first,
                                 static_cast<int32_t>(covering.size())});
}

// Divides the tokens wherever a segment begins or ends.
void plan_expand(LoraPlan& plan) {
  struct Event {
    int32_t token, segment;
    bool begins;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const DeviceLoraSegment& s = plan.segments[i];
    if (s.token_begin >= s.token_end) continue;
    events.push_back({s.token_begin, static_cast<int32_t>(i), true});
    events.push_back({s.token_end, static_cast<int32_t>(i), false});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.token < b.token; });
  std::vector<int32_t> covering;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.begins)
      covering.push_back(event.segment);
    else
      covering.erase(std::find(covering.begin(), covering.end(), event.segment));
    const bool last = i + 1 == events.size() || events[i + 1].token != event.token;
    if (last && !covering.empty())
      add_expand_tiles(plan, event.token, events[i + 1].token, covering);
  }
}

// Tiles for the tokens between those that segments cover.
void add_bare_tiles(LoraPlan& plan, int32_t tokens) {
  int32_t next = 0;
  const auto add_until = [&](int32_t end) {
    for (; next < end; next += plan.sizes.tile_tokens)
      plan.expand_tiles.push_back({next, std::min(plan.sizes.tile_tokens, end - next), 0, 0});
  };
  const size_t covered = plan.expand_tiles.size();
  for (size_t i = 0; i < covered; ++i) {
    const LoraExpandTile tile = plan.expand_tiles[i];
    add_until(tile.token_begin);
    next = tile.token_begin + tile.tokens;
  }
  add_until(tokens);
}

}  // namespace

LoraPlan plan_lora(const DeviceLoraSegment* segments, size_t count, bool wide, int32_t tokens) {
  LoraPlan plan;
  plan.segments.assign(segments, segments + count);
  LoraSizes& sizes = plan.sizes;
  int32_t longest = 0;
  for (const auto& s : plan.segments) longest = std::max(longest, s.token_end - s.token_begin);
  sizes.tile_tokens = wide || longest > 2 * kWide ? kWide : kNarrow;
  for (size_t i = 0; i < count; ++i) {
    DeviceLoraSegment& s = plan.segments[i];
    s.first_row = sizes.rows;
    for (int32_t token = s.token_begin; token < s.token_end; token += sizes.tile_tokens)
      plan.shrink_tiles.push_back(
          {static_cast<int32_t>(i), token, std::min(sizes.tile_tokens, s.token_end - token)});
    sizes.rows += std::max(s.token_end - s.token_begin, 0);
  }
  plan_expand(plan);
  sizes.shrink_tiles = static_cast<int32_t>(plan.shrink_tiles.size());
  sizes.expand_tiles = static_cast<int32_t>(plan.expand_tiles.size());
  sizes.tokens = tokens;
  if (tokens > 0) add_bare_tiles(plan, tokens);
  sizes.all_tiles = static_cast<int32_t>(plan.expand_tiles.size());
  return plan;
}

LoraSizes bounded_lora_sizes(const LoraBounds& bounds) {
  // A tile has at least one token, and each segment or range has at most one incomplete tile.
  const int32_t tile = bounds.tile_tokens;
  return {std::min(bounds.rows / tile + bounds.segments, bounds.rows),
          std::min(bounds.tokens / tile + bounds.ranges, bounds.tokens), bounds.rows, tile,
          // Ranges without segments may also be before the first segment and after the last one.
          std::min(bounds.tokens / tile + bounds.ranges + 2, bounds.tokens), bounds.tokens};
}

bool bound_lora_plan(const LoraSizes& bounds, LoraPlan& plan) {
  const LoraSizes& sizes = plan.sizes;
  const auto rows = static_cast<size_t>(bounds.rows);
  if (sizes.shrink_tiles > bounds.shrink_tiles || sizes.expand_tiles > bounds.expand_tiles ||
      sizes.rows > bounds.rows || sizes.tile_tokens != bounds.tile_tokens ||
      sizes.all_tiles > bounds.all_tiles || (sizes.tokens > 0 && sizes.tokens != bounds.tokens) ||
      plan.segments.size() > rows || plan.covers.size() > rows)
    return false;
  plan.sizes = bounds;
  plan.segments.resize(rows);
  plan.covers.resize(rows);
  plan.shrink_tiles.resize(bounds.shrink_tiles);
  plan.expand_tiles.resize(bounds.all_tiles);
  return true;
}

LoraTiles choose_lora_tiles(const LoraCall& call, CudaArch arch,
                            CudaTile (*choose)(const ProductShape&)) {
  const bool wide = call.sizes.tile_tokens > kNarrow;
  int64_t outs = 0;
  for (int i = 0; i < call.slice_count; ++i) outs += call.slices[i].out;
  ProductShape shrink{wide ? ProductKind::kLongShrink : ProductKind::kShrink,
                      call.dtype == Dtype::kFloat,
                      arch,
                      call.sizes.shrink_tiles,
                      int64_t{call.slice_count} * call.max_rank,
                      call.in},
      expand = shrink;
  expand.kind = wide ? ProductKind::kLongExpand : ProductKind::kExpand;
  expand.m = call.sizes.expand_tiles, expand.n = outs, expand.k = call.max_rank;
  return {choose(shrink), choose(expand)};
}

size_t lora_workspace_bytes(const LoraCall& call, const LoraTiles& tiles) {
  const int64_t rank_stride = (call.max_rank + 7) / 8 * 8;
  return static_cast<size_t>(call.slice_count) * tiles.shrink.splits * call.sizes.rows *
         rank_stride * sizeof(float);
}

Status lora_project(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream) {
  const Status status = lora_shrink(call, tiles, workspace, stream);
  return status != 0 ? status : lora_expand(call, tiles, workspace, stream);
}

}  // namespace valora::kernels::cuda
