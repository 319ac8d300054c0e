// The implementations of ops/attention.h. The caller has checked the arguments.
#pragma once

#include "kernels/types/runs.h"
#include "ops/attention.h"

namespace valora::ops {

at::Tensor paged_attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const KvArena& arena, int64_t layer,
                               std::span<const QuerySpan> spans, const AttentionRule& rule);
// Elements per layer of a KV block in panels, and bytes of one in 8 bits.
int64_t kv_layer_elements_cpu(int64_t kv_heads, int64_t dim, at::ScalarType dtype);
int64_t kv_layer_bytes_cpu(int64_t kv_heads, int64_t dim);

// Of queries and keys before attention.
struct RotaryOfStep {
  const RotaryAngles &queries, &keys;
};
// rotary: null if q and k have been rotated; else they are, and q in place.
at::Tensor paged_attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const RotaryOfStep* rotary, const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, SpanTables& tables);

at::Tensor paged_attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const KvArena& arena, int64_t layer,
                                std::span<const QuerySpan> spans, const AttentionRule& rule);

// Which of a span's positions its queries attend to: bool [queries, context + queries].
at::Tensor visible_positions(const QuerySpan& span, int64_t window);

// RunAttention (ops/run_attention.h): the rows from `begin` on. packed: its panels.
void store_runs_cpu(const at::Tensor& k, const at::Tensor& v, int64_t begin,
                    const kernels::Runs& runs, const at::Tensor& packed);
at::Tensor attend_runs_cpu(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                           const at::Tensor& packed);
// kv: [2 (K, V), rows, heads, dim]. Differentiable. most_scores: what one product has, because
// ATen may keep all of them in memory; at least those of one query, though.
constexpr int64_t kMostScores = 1 << 28;
at::Tensor attend_runs_aten(const at::Tensor& q, int64_t begin, const kernels::Runs& runs,
                            const at::Tensor& kv, int64_t most_scores = kMostScores);

}  // namespace valora::ops
