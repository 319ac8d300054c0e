// The implementations of ops/attention/attention.h. The caller has checked the arguments.
#pragma once

#include "kernels/types/runs.h"
#include "ops/attention/attention.h"

namespace valora::ops {

at::Tensor paged_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const KvArena& arena, int64_t layer,
                               std::span<const QuerySpan> spans, const AttentionRule& rule);
// Elements per layer of a KV block in panels, and bytes per layer of an 8-bit block.
int64_t kv_layer_elements_cpu(int64_t kv_heads, int64_t dim, at::ScalarType dtype);
int64_t kv_layer_bytes_cpu(int64_t kv_heads, int64_t dim);

// Rotates queries and keys before attention.
struct RotaryOfStep {
  const RotaryAngles &queries, &keys;
};
// rotary: null if q and k are already rotated; otherwise this rotates them, q in place.
at::Tensor paged_attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const RotaryOfStep* rotary, const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, const AttentionRule& rule,
                                SpanTables& tables);

at::Tensor paged_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, const AttentionRule& rule);

// The positions of a span that each of its queries attends to: bool [queries, context + queries].
at::Tensor visible_positions(const QuerySpan& span, int64_t window);

// For RunAttention (ops/attention/run_attention.h): the rows starting at `begin`. packed: its
// panels.
void store_runs_cpu(const at::Tensor& k, const at::Tensor& v, int64_t begin,
                    const kernels::Runs& runs, const at::Tensor& packed);
at::Tensor attend_runs_cpu(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                           const at::Tensor& packed);
// kv: [2 (K, V), rows, heads, dim]. Differentiable. most_scores: limit for one product, because
// ATen may keep all scores in memory; a product always takes at least one query.
constexpr int64_t kMostScores = 1 << 28;
at::Tensor attend_runs_aten(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                            const at::Tensor& kv, int64_t most_scores = kMostScores);

}  // namespace valora::ops
