#include <algorithm>
#include <optional>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention/hopper_plan.h"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/prompt_plan.h"
#include "kernels/cuda/attention/split_keys.h"

namespace valora::kernels::cuda {
namespace {

int64_t keys_of(const DeviceSpan& span) { return int64_t{span.context} + span.queries; }

// For spans with the same number of keys.
int64_t choose_even_split(const AttentionShape& shape, int64_t spans, int64_t keys,
                          int64_t most_parts = kMostParts) {
  return choose_split(
      shape, [&](int64_t split) { return spans * ((keys + split - 1) / split); }, keys, most_parts);
}

void add_span(AttentionPlan& plan, const QuerySpan& span) {
  plan.spans.push_back({static_cast<int32_t>(span.begin), static_cast<int32_t>(span.queries),
                        static_cast<int32_t>(span.context),
                        static_cast<int32_t>(plan.block_tables.size())});
  const int64_t blocks = (span.context + span.queries + kBlockTokens - 1) / kBlockTokens;
  plan.block_tables.insert(plan.block_tables.end(), span.blocks, span.blocks + blocks);
  for (int64_t i = 0; i < span.queries; ++i) {
    const int64_t position = span.context + i;
    plan.slots[span.begin + i] =
        int64_t{span.blocks[position / kBlockTokens]} * kBlockTokens + position % kBlockTokens;
    if (plan.sizes.joint)
      plan.ends[span.begin + i] = static_cast<int32_t>(visible_from(position, 0, span.joint).end);
  }
}

// For the larger of the two kernels in its smallest configuration, rounded up.
int32_t shared_bytes_of(int32_t dim) {
  if (dim <= 64) return 64 << 10;
  return dim <= 96 ? 96 << 10 : dim <= 128 ? 80 << 10 : 160 << 10;
}

int32_t group_of(const AttentionShape& shape) { return shape.heads / shape.kv_heads; }

int32_t tile_queries(const AttentionShape& shape) {
  return attention_kernels(shape) == AttentionKernels::kTensorCores
             ? prefill_rows(shape.dim) / group_of(shape)
             : 1;
}

// Tiles of the spans that are not decodes, most keys first.
void add_tiles(AttentionPlan& plan, int32_t queries) {
  for (auto i = static_cast<size_t>(plan.sizes.decode_spans); i < plan.spans.size(); ++i)
    for (int32_t first = 0; first < plan.spans[i].queries; first += queries)
      plan.tiles.push_back({static_cast<int32_t>(i), first});
  const auto last_key = [&](const AttentionTile& tile) {
    return plan.spans[tile.span].context + tile.first_query;
  };
  std::stable_sort(plan.tiles.begin(), plan.tiles.end(),
                   [&](const auto& a, const auto& b) { return last_key(a) > last_key(b); });
  plan.sizes.tiles = static_cast<int32_t>(plan.tiles.size());
}

// The whole plan except for how decodes' keys are split. joint: with a table of ends in any case.
AttentionPlan list_spans(const AttentionShape& shape, const QuerySpan* spans, size_t count,
                         int64_t tokens, bool joint = false) {
  AttentionPlan plan;
  AttentionSizes& sizes = plan.sizes;
  sizes.kernels = attention_kernels(shape);
  sizes.tokens = static_cast<int32_t>(tokens);
  sizes.shared_bytes = shape.shared_bytes;
  plan.slots.assign(tokens, -1);
  sizes.joint = joint || std::any_of(spans, spans + count, has_joint_queries);
  if (sizes.joint) plan.ends.assign(tokens, 0);
  const int64_t most_queries = decode_queries(shape);
  for (const bool decode : {true, false})
    for (size_t i = 0; i < count; ++i)
      if (spans[i].queries > 0 && (spans[i].queries <= most_queries) == decode) {
        add_span(plan, spans[i]);
        if (!decode) continue;
        ++sizes.decode_spans;
        const DeviceSpan& span = plan.spans.back();
        sizes.decode_rows = std::max(sizes.decode_rows, span.queries * group_of(shape));
        sizes.longest = std::max(sizes.longest, static_cast<int32_t>(keys_of(span)));
      }
  add_tiles(plan, tile_queries(shape));
  return plan;
}

// Inserts empty decode spans, so that the other spans start where the bounds place them.
void add_empty_decodes(AttentionPlan& plan, int32_t count) {
  plan.spans.insert(plan.spans.begin() + plan.sizes.decode_spans, count, DeviceSpan{});
  for (AttentionTile& tile : plan.tiles) tile.span += count;
}

}  // namespace

bool has_joint_queries(const QuerySpan& span) {
  return std::any_of(span.joint.begin(), span.joint.end(), [&](const PositionRange& range) {
    return range.begin < span.context + span.queries && range.end > span.context;
  });
}

AttentionKernels attention_kernels(const AttentionShape& shape) {
  const bool fits = shape.shared_bytes >= shared_bytes_of(shape.dim) &&
                    shape.dtype != Dtype::kFloat && shape.aligned && shape.dim % 8 == 0 &&
                    shape.dim <= 256 && shape.heads / shape.kv_heads <= kWidePrefillRows;
  return fits ? AttentionKernels::kTensorCores : AttentionKernels::kPlain;
}

int32_t decode_queries(const AttentionShape& shape) {
  return attention_kernels(shape) == AttentionKernels::kTensorCores ? kDecodeRows / group_of(shape)
                                                                    : 0;
}

AttentionPlan plan_attention(const AttentionShape& shape, const QuerySpan* spans, size_t count,
                             int64_t tokens) {
  AttentionPlan plan = list_spans(shape, spans, count, tokens);
  AttentionSizes& sizes = plan.sizes;
  if (flashinfer_takes(shape) && !sizes.joint) {
    if (const auto lists = hopper_sizes(shape, plan))
      add_hopper_prompts(shape, *lists, plan);
    else
      add_prompts(shape, prompt_sizes(shape, plan), plan);
  }
  if (sizes.decode_spans == 0) return plan;
  std::vector<int64_t> span_keys;
  for (int32_t i = 0; i < sizes.decode_spans; ++i) span_keys.push_back(keys_of(plan.spans[i]));
  const auto parts_of = [&](int64_t split) {
    int64_t parts = 0;
    for (const int64_t keys : span_keys) parts += (keys + split - 1) / split;
    return parts;
  };
  sizes.split_keys = static_cast<int32_t>(choose_split(shape, parts_of, sizes.longest));
  return plan;
}

AttentionSizes sizes_in_window(const AttentionShape& shape, const AttentionSizes& sizes,
                               int64_t window) {
  if (window == 0 || sizes.decode_spans == 0) return sizes;
  const int64_t queries = (sizes.decode_rows + group_of(shape) - 1) / group_of(shape);
  // The window of the first query may begin with the last token of a block.
  const int64_t longest = window + queries + kBlockTokens - 2;
  if (longest >= sizes.longest) return sizes;
  AttentionSizes inner = sizes;
  inner.longest = static_cast<int32_t>(longest);
  inner.split_keys =
      static_cast<int32_t>(choose_even_split(shape, sizes.decode_spans, longest, sizes.splits()));
  return inner;
}

bool decode_fits(const AttentionShape& shape) { return decode_queries(shape) > 0; }

AttentionSizes bounded_attention_sizes(const AttentionShape& shape, const AttentionBounds& bounds) {
  AttentionSizes sizes;
  sizes.kernels = AttentionKernels::kTensorCores;
  sizes.tokens = bounds.tokens;
  sizes.shared_bytes = shape.shared_bytes;
  sizes.joint = bounds.joint;
  if (bounds.decode_spans > 0) {
    sizes.decode_spans = bounds.decode_spans;
    sizes.decode_rows = bounds.decode_queries * group_of(shape);
    sizes.longest = bounds.longest;
    sizes.split_keys =
        static_cast<int32_t>(choose_even_split(shape, bounds.decode_spans, bounds.longest));
  }
  // Each of the other spans has at most one incomplete tile, and at least decode_queries(shape) + 1
  // queries.
  if (bounds.other_spans > 0)
    sizes.tiles = std::min(bounds.tokens / tile_queries(shape) + bounds.other_spans,
                           bounds.tokens / (decode_queries(shape) + 1));
  if (flashinfer_takes(shape) && !bounds.joint)
    sizes.prompts = bounded_prompt_sizes(shape, bounds.tokens, bounds.other_spans);
  return sizes;
}

std::optional<AttentionPlan> plan_bounded_attention(const AttentionShape& shape,
                                                    const AttentionSizes& bounds,
                                                    const QuerySpan* spans, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (spans[i].begin + spans[i].queries > bounds.tokens) return std::nullopt;
  AttentionPlan plan = list_spans(shape, spans, count, bounds.tokens, bounds.joint);
  const AttentionSizes& sizes = plan.sizes;
  if (sizes.decode_spans > bounds.decode_spans || sizes.decode_rows > bounds.decode_rows ||
      sizes.longest > bounds.longest || sizes.tiles > bounds.tiles || sizes.joint != bounds.joint)
    return std::nullopt;
  if (bounds.prompts.items > 0 && !add_prompts(shape, bounds.prompts, plan)) return std::nullopt;
  add_empty_decodes(plan, bounds.decode_spans - sizes.decode_spans);
  plan.spans.resize(bounds.decode_spans + bounds.tiles);  // a span has at least one tile
  plan.tiles.resize(bounds.tiles);
  plan.sizes = bounds;
  return plan;
}

size_t attention_counters(const AttentionSizes& sizes, int32_t kv_heads) {
  return sizes.splits() == 1 ? 0 : static_cast<size_t>(sizes.decode_spans) * kv_heads;
}

size_t attention_workspace_bytes(const AttentionSizes& sizes, int32_t kv_heads, int32_t dim) {
  if (sizes.splits() == 1) return 0;
  // Per part of a row: the weighted sum of values, the largest score and the sum of weights.
  return static_cast<size_t>(sizes.decode_spans) * kv_heads * sizes.decode_rows * sizes.splits() *
         (dim + 2) * sizeof(float);
}

}  // namespace valora::kernels::cuda
