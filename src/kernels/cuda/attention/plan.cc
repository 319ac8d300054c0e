#include <algorithm>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention/launchers.h"

namespace valora::kernels::cuda {
namespace {

constexpr int64_t kSplitUnit = 64;  // 4 warps with a KV block each
constexpr int64_t kBlocksPerProcessor = 2;
// What a thread block costs beside its keys (start, merge of warps, partial results), in keys.
constexpr int64_t kBlockOverhead = 64;

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

int64_t keys_of(const DeviceSpan& span) { return int64_t{span.context} + span.queries; }

// The keys per thread block that give the shortest schedule of equal waves. keys: per span.
int64_t choose_split(const AttentionShape& shape, const std::vector<int64_t>& span_keys,
                     int64_t longest) {
  const int64_t slots = kBlocksPerProcessor * std::max(shape.multiprocessors, 1);
  int64_t best = round_up(std::max<int64_t>(longest, 1), kSplitUnit), best_cost = INT64_MAX;
  for (int64_t parts = 1; parts <= 64; ++parts) {
    const int64_t keys = round_up((longest + parts - 1) / parts, kSplitUnit);
    if (parts > 1 && keys < 2 * kSplitUnit) break;
    int64_t blocks = 0;
    for (const int64_t of_span : span_keys) blocks += (of_span + keys - 1) / keys * shape.kv_heads;
    // Merging the parts costs about as much as another block.
    const int64_t cost = (blocks + slots - 1) / slots * (keys + kBlockOverhead) +
                         (parts > 1 ? 2 * kBlockOverhead : 0);
    if (cost < best_cost) best_cost = cost, best = keys;
  }
  return best;
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
  }
}

// Of the larger of the two kernels in their smallest form, rounded up.
int32_t shared_bytes_of(int32_t dim) {
  if (dim <= 64) return 64 << 10;
  return dim <= 96 ? 96 << 10 : dim <= 128 ? 80 << 10 : 160 << 10;
}

}  // namespace

AttentionKernels attention_kernels(const AttentionShape& shape) {
  const bool fits = shape.shared_bytes >= shared_bytes_of(shape.dim) &&
                    shape.dtype != Dtype::kFloat && shape.aligned && shape.dim % 8 == 0 &&
                    shape.dim <= 256 && shape.heads / shape.kv_heads <= kWidePrefillRows;
  return fits ? AttentionKernels::kTensorCores : AttentionKernels::kPlain;
}

AttentionPlan plan_attention(const AttentionShape& shape, const QuerySpan* spans, size_t count,
                             int64_t tokens) {
  AttentionPlan plan;
  AttentionSizes& sizes = plan.sizes;
  sizes.kernels = attention_kernels(shape);
  sizes.tokens = static_cast<int32_t>(tokens);
  sizes.shared_bytes = shape.shared_bytes;
  plan.slots.assign(tokens, -1);
  const int64_t group = shape.heads / shape.kv_heads;
  const bool tensor_cores = sizes.kernels == AttentionKernels::kTensorCores;
  const auto decodes = [&](const QuerySpan& span) {
    return tensor_cores && span.queries * group <= kDecodeRows;
  };
  std::vector<int64_t> span_keys;
  for (const bool decode : {true, false})
    for (size_t i = 0; i < count; ++i)
      if (spans[i].queries > 0 && decodes(spans[i]) == decode) {
        add_span(plan, spans[i]);
        if (!decode) continue;
        ++sizes.decode_spans;
        const DeviceSpan& span = plan.spans.back();
        sizes.decode_rows = std::max(sizes.decode_rows, static_cast<int32_t>(span.queries * group));
        span_keys.push_back(keys_of(span));
        sizes.longest = std::max(sizes.longest, static_cast<int32_t>(span_keys.back()));
      }
  if (sizes.decode_spans > 0)
    sizes.split_keys = static_cast<int32_t>(choose_split(shape, span_keys, sizes.longest));

  const int32_t tile_queries =
      tensor_cores ? static_cast<int32_t>(prefill_rows(shape.dim) / group) : 1;
  for (auto i = static_cast<size_t>(sizes.decode_spans); i < plan.spans.size(); ++i)
    for (int32_t first = 0; first < plan.spans[i].queries; first += tile_queries)
      plan.tiles.push_back({static_cast<int32_t>(i), first});
  const auto last_key = [&](const AttentionTile& tile) {
    return plan.spans[tile.span].context + tile.first_query;
  };
  std::stable_sort(plan.tiles.begin(), plan.tiles.end(),
                   [&](const auto& a, const auto& b) { return last_key(a) > last_key(b); });
  sizes.tiles = static_cast<int32_t>(plan.tiles.size());
  return plan;
}

bool decode_fits(const AttentionShape& shape) {
  return attention_kernels(shape) == AttentionKernels::kTensorCores &&
         shape.heads / shape.kv_heads <= kDecodeRows;
}

AttentionSizes decode_sizes(const AttentionShape& shape, int32_t spans, int32_t longest) {
  AttentionSizes sizes;
  sizes.kernels = AttentionKernels::kTensorCores;
  sizes.tokens = sizes.decode_spans = spans;
  sizes.decode_rows = shape.heads / shape.kv_heads;
  sizes.longest = longest;
  sizes.shared_bytes = shape.shared_bytes;
  sizes.split_keys = static_cast<int32_t>(
      choose_split(shape, std::vector<int64_t>(static_cast<size_t>(spans), longest), longest));
  return sizes;
}

AttentionPlan plan_decode(const AttentionSizes& sizes, const QuerySpan* spans, size_t count) {
  AttentionPlan plan;
  plan.sizes = sizes;
  plan.slots.assign(sizes.tokens, -1);
  for (size_t i = 0; i < count; ++i) add_span(plan, spans[i]);
  plan.spans.resize(sizes.decode_spans);
  return plan;
}

size_t decode_blocks(const AttentionSizes& sizes) {
  return (static_cast<size_t>(sizes.longest) + kBlockTokens - 1) / kBlockTokens *
         static_cast<size_t>(sizes.decode_spans);
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
