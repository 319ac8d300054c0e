#include "ops/attention/attention_targets.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <vector>

namespace valora::ops {
namespace {

at::Tensor block_indices(const QuerySpan& span, int64_t block_tokens, at::Device device) {
  const int64_t length = span.context + span.queries;
  const int64_t count = (length + block_tokens - 1) / block_tokens;
  at::Tensor blocks = at::empty({count}, at::kInt);
  std::copy(span.blocks, span.blocks + count, blocks.mutable_data_ptr<int32_t>());
  return blocks.to(device);
}

// Keys or values of one sequence, [1, heads, length, dim]: each KV head is repeated for its group
// of query heads.
at::Tensor gather(const at::Tensor& side, const at::Tensor& blocks, int64_t length, int64_t group) {
  const int64_t kv_heads = side.size(2), dim = side.size(3);
  at::Tensor rows =
      at::index_select(side, 0, blocks).reshape({-1, kv_heads, dim}).narrow(0, 0, length);
  rows = rows.permute({1, 0, 2});  // [kv_heads, length, dim]
  if (group > 1)
    rows = rows.unsqueeze(1)
               .expand({kv_heads, group, length, dim})
               .reshape({kv_heads * group, length, dim});
  return rows.unsqueeze(0);
}

void attend_gathered(const at::Tensor& q, const at::Tensor& layer, const QuerySpan& span,
                     const AttentionRule& rule, at::Tensor& out) {
  const int64_t heads = q.size(1), dim = q.size(2), length = span.context + span.queries;
  const at::Tensor blocks = block_indices(span, layer.size(2), q.device());
  const int64_t group = heads / layer.size(3);
  const at::Tensor k = gather(layer.select(1, 0), blocks, length, group);
  const at::Tensor v = gather(layer.select(1, 1), blocks, length, group);
  const at::Tensor query = q.narrow(0, span.begin, span.queries).permute({1, 0, 2}).unsqueeze(0);
  const bool cuts = rule.window > 0 && rule.window < length;
  std::optional<at::Tensor> mask;
  if (cuts || !span.joint.empty() || (span.context > 0 && span.queries > 1))
    mask = visible_positions(span, rule.window).to(q.device());
  const at::Tensor o = at::scaled_dot_product_attention(
      query, k, v, mask, 0.0, !mask && span.context == 0, rule.scale_of(dim));
  out.narrow(0, span.begin, span.queries)
      .copy_(o.squeeze(0).permute({1, 0, 2}).reshape({span.queries, heads * dim}));
}

void store_gathered(const at::Tensor& k, const at::Tensor& v, const at::Tensor& layer,
                    std::span<const QuerySpan> spans) {
  std::vector<int64_t> blocks, offsets;
  const int64_t block_tokens = layer.size(2);
  for (const QuerySpan& span : spans)
    for (int64_t i = 0; i < span.queries; ++i) {
      blocks.push_back(span.blocks[(span.context + i) / block_tokens]);
      offsets.push_back((span.context + i) % block_tokens);
    }
  const at::Tensor block = at::tensor(blocks).to(k.device()),
                   offset = at::tensor(offsets).to(k.device());
  layer.select(1, 0).index_put_({block, offset}, k);
  layer.select(1, 1).index_put_({block, offset}, v);
}

}  // namespace

at::Tensor visible_positions(const QuerySpan& span, int64_t window) {
  const int64_t length = span.context + span.queries;
  at::Tensor visible = at::ones({span.queries, length}, at::kBool).tril_(span.context);
  for (const PositionRange& range : span.joint) {
    const int64_t first = std::clamp(range.begin - span.context, int64_t{0}, span.queries),
                  last = std::clamp(range.end - span.context, first, span.queries);
    visible.slice(0, first, last).slice(1, range.begin, range.end).fill_(true);
  }
  if (window > 0) visible.triu_(span.context - window + 1);
  return visible;
}

at::Tensor paged_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, const AttentionRule& rule) {
  // [blocks, 2 (K, V), tokens, kv_heads, dim]
  const at::Tensor cache = arena.data().select(1, layer);
  at::Tensor out = at::empty({q.size(0), q.size(1) * q.size(2)}, q.options());
  store_gathered(k, v, cache, spans);
  for (const QuerySpan& span : spans) attend_gathered(q, cache, span, rule, out);
  return out;
}

at::Tensor attend_runs_aten(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                            const at::Tensor& kv, int64_t most_scores) {
  const int64_t end = begin + q.size(0), heads = q.size(1);
  at::Tensor out = at::empty({q.size(0), heads * q.size(2)}, q.options());
  for (int64_t row = begin; row < end;) {
    const int64_t run = runs.run_of(row), length = runs.length(run);
    const int64_t most_rows = std::max<int64_t>(1, most_scores / (heads * length));
    const int64_t last = std::min({end, runs.end(run), row + most_rows});
    // Consecutive whole runs of equal length (frames, pictures, windows) form one batched product.
    int64_t count = 1;
    if (last - row == length)
      while (run + count < runs.count() && runs.length(run + count) == length &&
             runs.end(run + count) <= end && (count + 1) * length <= most_rows)
        ++count;
    const int64_t queries = count > 1 ? count * length : last - row;
    const auto part = [&](const at::Tensor& x, int64_t at, int64_t rows) {
      return x.narrow(0, at, rows).unflatten(0, {count, rows / count}).transpose(1, 2);
    };  // [count, heads, rows, dim]
    const int64_t keys_at = runs.begin(run), keys = count * length;
    const at::Tensor o = at::scaled_dot_product_attention(
        part(q, row - begin, queries), part(kv[0], keys_at, keys), part(kv[1], keys_at, keys));
    out.narrow(0, row - begin, queries)
        .unflatten(0, {count, queries / count})
        .copy_(o.transpose(1, 2).flatten(2));
    row += queries;
  }
  return out;
}

}  // namespace valora::ops
