// The kernels that implement paged_attention().
#pragma once

#include "kernels/cuda/attention.h"

namespace valora::kernels::cuda {

// Query rows per tile. Rows are (query, head of the group) pairs; heads vary fastest.
inline constexpr int kDecodeRows = 16;
inline constexpr int kPrefillRows = 128;     // dim <= 128
inline constexpr int kWidePrefillRows = 64;  // dim > 128
constexpr int prefill_rows(int dim) { return dim <= 128 ? kPrefillRows : kWidePrefillRows; }

struct PromptCall;

struct AttentionCall {
  KvCache cache;
  TokenRows q;
  int32_t heads = 0;
  void* out = nullptr;
  AttentionRule rule;
  AttentionSizes sizes;
  AttentionTables tables;
  void* workspace = nullptr;
  Stream stream = nullptr;
};

// The window as kernels take it; 0: none, which is what one longer than any sequence amounts to.
constexpr int32_t window_of(const AttentionCall& call) {
  return call.rule.window > INT32_MAX ? 0 : static_cast<int32_t>(call.rule.window);
}

Status store_kv_bytes(const KvCache& cache, TokenRows k, TokenRows v, const int64_t* slots,
                      int64_t tokens, Stream stream);
Status decode_attention(const AttentionCall& call);   // the decode spans
Status prefill_attention(const AttentionCall& call);  // the tiles, with tensor cores
Status plain_attention(const AttentionCall& call);    // the tiles, one query each
// True if FlashInfer's kernels take the spans that are not decodes, as prompt_attention().
bool flashinfer_takes(const AttentionCall& call);
Status prompt_attention(const AttentionCall& call);
// call: of split keys. out: [tokens, heads, dim] in its dtype.
Status merge_prompt_parts(const PromptCall& call, int32_t tokens, void* out);

}  // namespace valora::kernels::cuda
