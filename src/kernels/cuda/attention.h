// Causal attention over the paged KV cache (vLLM §4.1 paging, FlashAttention-2 §3.1, split keys as
// in Flash-Decoding). Scores are scaled by 1/sqrt(dim); sums are in fp32.
#pragma once

#include <optional>
#include <vector>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/types.h"
#include "kernels/types/query_span.h"

namespace valora::kernels::cuda {

// One layer of the cache in the blocks of a pool. Block b begins at element b * block_stride, the
// layer `layer_offset` elements later: [2 (K, V), kBlockTokens, kv_heads, dim].
struct KvCache {
  void* pool = nullptr;
  int64_t block_stride = 0;
  int64_t layer_offset = 0;  // layer * 2 * kBlockTokens * kv_heads * dim
  int32_t kv_heads = 0;
  int32_t dim = 0;  // even, at most 256
  Dtype dtype = Dtype::kBf16;
};

// Query rows [begin, begin + queries) have the positions context … context + queries - 1. Their
// block table begins at block_tables[first_block].
struct DeviceSpan {
  int32_t begin = 0, queries = 0, context = 0, first_block = 0;
};

// Queries of one span from first_query on, for one thread block per kv head. span -1: none.
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
  // Whether all rows of q, k, v, out and the cache begin 16-byte aligned.
  bool aligned = true;
  int32_t multiprocessors = 132;
  int32_t shared_bytes = 227 << 10;  // that a thread block can have
};

AttentionKernels attention_kernels(const AttentionShape& shape);

// What the host knows of a step. Grids are sized by it, so a captured graph can be replayed with
// other tables as long as these hold: spans and tiles beyond those in use have no queries and span
// -1, and longest is an upper bound.
struct AttentionSizes {
  AttentionKernels kernels = AttentionKernels::kPlain;
  int32_t tokens = 0;                // of the step
  int32_t decode_spans = 0;          // the first spans of the table: those with few queries
  int32_t decode_rows = 0;           // most queries of them, times heads / kv_heads; at most 16
  int32_t longest = 0;               // most keys of them
  int32_t split_keys = 64;           // keys per thread block of a decode span; a multiple of 64
  int32_t tiles = 0;                 // of all other spans
  int32_t shared_bytes = 227 << 10;  // that a thread block can have
  int32_t splits() const {
    return longest <= split_keys ? 1 : (longest + split_keys - 1) / split_keys;
  }
};

// The tables of a step, on the host. The caller copies them to the device.
struct AttentionPlan {
  AttentionSizes sizes;
  std::vector<DeviceSpan> spans;
  std::vector<int32_t> block_tables;
  // Per token: block * kBlockTokens + offset, where its K and V are stored; -1: nowhere.
  std::vector<int64_t> slots;
  std::vector<AttentionTile> tiles;  // those with most keys first
};

// spans: host, with block tables on the host. tokens: of the step, at least the end of every span.
AttentionPlan plan_attention(const AttentionShape& shape, const QuerySpan* spans, size_t count,
                             int64_t tokens);

// Most queries of a span that attends as a decode: kernels on tensor cores take the keys of such a
// span in parts. 0: none does.
int32_t decode_queries(const AttentionShape& shape);

// For captured graphs: the bounds of a set of steps.
struct AttentionBounds {
  int32_t tokens = 0;
  int32_t decode_spans = 0;  // spans of at most decode_queries queries
  int32_t decode_queries = 1;
  int32_t longest = 0;      // most keys of one of these; 0: there are none
  int32_t other_spans = 0;  // of more queries than decode_queries(shape)
};
// Only with tensor cores and heads / kv_heads of at most 16 (decode_fits).
bool decode_fits(const AttentionShape& shape);
AttentionSizes bounded_attention_sizes(const AttentionShape& shape, const AttentionBounds& bounds);
// The plan of a step with the sizes of bounds; absent if the step is beyond them. The sizes of its
// tables depend on the bounds alone, but for the block tables, which have the blocks of the step.
// Surplus spans have no queries, surplus tiles no span, and surplus tokens no slots.
std::optional<AttentionPlan> plan_bounded_attention(const AttentionShape& shape,
                                                    const AttentionSizes& bounds,
                                                    const QuerySpan* spans, size_t count);

// The device copies of a plan's tables.
struct AttentionTables {
  const DeviceSpan* spans = nullptr;
  const int32_t* block_tables = nullptr;
  const int64_t* slots = nullptr;
  const AttentionTile* tiles = nullptr;
  // One per decode span and kv head, zeros, which they are again after each launch: the last thread
  // block of a span that ends merges its parts. Null: a launch of its own does.
  uint32_t* counters = nullptr;
};

// How many counters there are; 0 if there is nothing to merge.
size_t attention_counters(const AttentionSizes& sizes, int32_t kv_heads);
// Bytes of the workspace of paged_attention, 16-byte aligned.
size_t attention_workspace_bytes(const AttentionSizes& sizes, int32_t kv_heads, int32_t dim);

// Rows of a step's tokens with contiguous heads: [tokens, heads, dim].
struct TokenRows {
  const void* data = nullptr;
  int64_t token_stride = 0;  // elements
};

// Writes k and v, [tokens, kv_heads, dim], to their slots.
Status store_kv(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots,
                int64_t tokens, Stream stream);

// Of a step's tokens: float [tokens, dim / 2].
struct Angles {
  const float *cos = nullptr, *sin = nullptr;
};

// What rotate_half() of q, in place, and of k and then store_kv() do, bit for bit, in one launch; k
// itself is not written.
Status rotate_and_store(const KvCache& cache, Heads q, TokenRows k, TokenRows v, Angles of_q,
                        Angles of_k, const int64_t* slots, int64_t tokens, Stream stream);

// Attention of q, [tokens, heads, dim], over each span's keys, which include its own. out:
// [tokens, heads * dim]; rows outside of all spans are not written. Fails with
// cudaErrorInvalidValue if the kernels of `sizes` do not support the arguments.
Status paged_attention(const KvCache& cache, TokenRows q, int32_t heads, void* out,
                       const AttentionSizes& sizes, const AttentionTables& tables, void* workspace,
                       Stream stream);

}  // namespace valora::kernels::cuda
