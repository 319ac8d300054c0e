// Attention over the paged KV cache (vLLM §4.1 paging, FlashAttention-2 §3.1, split keys as in
// Flash-Decoding): causal except in joint ranges, in layers with a window only over the latest
// keys. Sums are in fp32.
#pragma once

#include <optional>
#include <vector>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/types.h"
#include "kernels/types/forms.h"
#include "kernels/types/spans.h"

namespace valora::kernels::cuda {

// One layer of the cache, in the blocks of a pool. Block b begins at element b * block_stride, the
// layer `layer_offset` elements later: [2 (K, V), kBlockTokens, kv_heads, dim]. In 8 bits the
// elements are bytes, followed by the scales in bf16: [2 (K, V), kBlockTokens, kv_heads].
struct KvCache {
  void* pool = nullptr;
  int64_t block_stride = 0;
  int64_t layer_offset = 0;  // layer * kv_layer_elements()
  int32_t kv_heads = 0;
  int32_t dim = 0;             // even, at most 256
  Dtype dtype = Dtype::kBf16;  // of q, k and v, and of the cache unless it is in 8 bits
  KvFormat format = KvFormat::kPlain;
};

constexpr int64_t kv_layer_elements(int64_t kv_heads, int64_t dim, KvFormat format) {
  return 2 * kBlockTokens * kv_heads * (in_bytes(format) ? dim + 2 : dim);
}

// Query rows [begin, begin + queries) are at positions context … context + queries - 1. Their block
// table begins at block_tables[first_block].
struct DeviceSpan {
  int32_t begin = 0, queries = 0, context = 0, first_block = 0;
};

// Queries of one span starting at first_query, for one thread block per KV head. span -1: unused.
struct AttentionTile {
  int32_t span = -1, first_query = 0;
};

enum class AttentionKernels : uint8_t {
  kTensorCores,  // 16-bit types, dim a multiple of 8, rows 16-byte aligned, heads / kv_heads <= 64
  kPlain,        // any; for fp32 and small models
};

struct AttentionShape {
  int32_t heads = 0;  // a multiple of kv_heads
  int32_t kv_heads = 0;
  int32_t dim = 0;
  Dtype dtype = Dtype::kBf16;
  // All rows of q, k, v, out and the cache begin 16-byte aligned.
  bool aligned = true;
  int32_t multiprocessors = 132;
  int32_t shared_bytes = 227 << 10;  // available to a thread block
  bool flashinfer = false;           // prompts by FlashInfer's kernels, if flashinfer_takes()
  bool hopper = false;               // of compute capability 9.0
};

AttentionKernels attention_kernels(const AttentionShape& shape);

// True if FlashInfer's kernels are compiled for these heads and can take their prompts: 16-bit
// types, dim 64, 128 or 256, and all that tensor cores need. Layers with a window, steps with joint
// queries and caches in 8 bits are not theirs in any case.
bool flashinfer_takes(const AttentionShape& shape);
// True if they are compiled for any heads.
bool built_with_flashinfer();

// The work of the spans that are not decodes, if it is FlashInfer's (attention/prompt_plan.h,
// attention/hopper_plan.h).
struct PromptSizes {
  int32_t items = 0;      // thread blocks for each KV head; 0: our own kernel takes the tiles
  int32_t requests = 0;   // spans
  int32_t part_rows = 0;  // rows of partial results; 0: keys are not split
  int32_t lists = 0;      // FA3: thread blocks, which take the items of a list each; else 0
};

// What the host knows about a step. Grid sizes depend only on this, so a captured graph can be
// replayed with other tables that fit: surplus spans have no queries, surplus tiles have span -1,
// and `longest` is an upper bound.
struct AttentionSizes {
  AttentionKernels kernels = AttentionKernels::kPlain;
  int32_t tokens = 0;        // in the step
  int32_t decode_spans = 0;  // spans with few queries, which come first in the table
  int32_t decode_rows = 0;   // their largest number of queries, times heads / kv_heads; at most 16
  int32_t longest = 0;       // their largest number of keys
  int32_t split_keys = 64;   // keys per thread block of a decode span; a multiple of 64
  int32_t tiles = 0;         // for all other spans
  int32_t shared_bytes = 227 << 10;  // available to a thread block
  bool joint = false;                // queries may be in joint ranges, and there is a table of ends
  PromptSizes prompts;
  int32_t splits() const {
    return longest <= split_keys ? 1 : (longest + split_keys - 1) / split_keys;
  }
};

// The tables of a step, on the host. The caller copies them to the device.
struct AttentionPlan {
  AttentionSizes sizes;
  std::vector<DeviceSpan> spans;
  std::vector<int32_t> block_tables;
  // Per token: block * kBlockTokens + offset, where its K and V are stored; -1: not stored.
  std::vector<int64_t> slots;
  std::vector<AttentionTile> tiles;  // most keys first
  // Per token, if sizes.joint: the end of the positions that it attends to; 0 outside all spans.
  std::vector<int32_t> ends;
  std::vector<int32_t> prompts;  // as sizes.prompts; laid out by attention/prompt_plan.h
};

// True if a query of the span is in a joint range.
bool has_joint_queries(const QuerySpan& span);

// spans: on the host, with block tables on the host. tokens: of the step; at least the end of every
// span.
AttentionPlan plan_attention(const AttentionShape& shape, const QuerySpan* spans, size_t count,
                             int64_t tokens);

// The sizes of a layer with this window in a step with these sizes: decodes have fewer keys, in no
// more parts, so that the step's counters and workspace suffice. window 0: unchanged.
AttentionSizes sizes_in_window(const AttentionShape& shape, const AttentionSizes& sizes,
                               int64_t window);

// The most queries with which a span attends as a decode. Tensor-core kernels split the keys of
// such spans. 0: no span does.
int32_t decode_queries(const AttentionShape& shape);

// For captured graphs: the bounds of a set of steps.
struct AttentionBounds {
  int32_t tokens = 0;
  int32_t decode_spans = 0;  // spans with at most decode_queries queries
  int32_t decode_queries = 1;
  int32_t longest = 0;      // the most keys of any of them; 0: there are none
  int32_t other_spans = 0;  // spans with more than decode_queries(shape) queries
  bool joint = false;       // queries may be in joint ranges
};
// Bounds require tensor cores and heads / kv_heads of at most 16, which decode_fits() checks.
bool decode_fits(const AttentionShape& shape);
AttentionSizes bounded_attention_sizes(const AttentionShape& shape, const AttentionBounds& bounds);
// The plan of a step with table sizes that depend only on the bounds, except block_tables, which
// has the blocks of the step; nullopt if the step exceeds the bounds. Surplus spans have no
// queries, surplus tiles no span, and surplus tokens no slots.
std::optional<AttentionPlan> plan_bounded_attention(const AttentionShape& shape,
                                                    const AttentionSizes& bounds,
                                                    const QuerySpan* spans, size_t count);

// The device copies of a plan's tables.
struct AttentionTables {
  const DeviceSpan* spans = nullptr;
  const int32_t* block_tables = nullptr;
  const int64_t* slots = nullptr;
  const AttentionTile* tiles = nullptr;
  // One per decode span and KV head. Zero before and after each launch: the last thread block of a
  // span to finish merges the span's parts. Null: a separate launch merges them.
  uint32_t* counters = nullptr;
  const int32_t* ends = nullptr;  // null unless sizes.joint
  const int32_t* prompts = nullptr;
  void* prompt_parts = nullptr;  // prompt_workspace_bytes(), 16-byte aligned
};

// The number of counters; 0 if there is nothing to merge.
size_t attention_counters(const AttentionSizes& sizes, int32_t kv_heads);
// Size of paged_attention()'s workspace in bytes; it must be 16-byte aligned.
size_t attention_workspace_bytes(const AttentionSizes& sizes, int32_t kv_heads, int32_t dim);
// The bytes of partial results of prompts whose keys are split; 0 if none are. Bounded sizes of a
// shape have the same bytes, or none, so captured steps, which run one at a time, can share them.
size_t prompt_workspace_bytes(const AttentionSizes& sizes, int32_t heads, int32_t dim);

// Writes k and v, [tokens, kv_heads, dim], to their slots.
Status store_kv(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots,
                int64_t tokens, Stream stream);

// Rotary angles of a step's tokens: float [tokens, rotated / 2].
struct Angles {
  const float *cos = nullptr, *sin = nullptr;
};

// The same, bit for bit, as rotate_half() of q in place and of k, followed by store_kv(), but in
// one launch; k itself is not written. rotated: elements of each head, as rotate_half() takes them.
// Not for caches in 8 bits.
Status rotate_and_store(const KvCache& cache, Heads q, TokenRows k, TokenRows v, Angles of_q,
                        Angles of_k, int32_t rotated, const int64_t* slots, int64_t tokens,
                        Stream stream);

// Attention of q, [tokens, heads, dim], over each span's keys, its own included. out: [tokens,
// heads * dim]; rows outside all spans are not written. sizes: of the step, or sizes_in_window() of
// them. KV blocks outside the window are not read. Fails with cudaErrorInvalidValue if the kernels
// of `sizes` do not support the arguments.
Status paged_attention(const KvCache& cache, TokenRows q, int32_t heads, void* out,
                       const AttentionRule& rule, const AttentionSizes& sizes,
                       const AttentionTables& tables, void* workspace, Stream stream);

}  // namespace valora::kernels::cuda
