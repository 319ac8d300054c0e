// The kernels behind paged_attention.
#pragma once

#include "kernels/cuda/attention.h"

namespace valora::kernels::cuda {

// Query rows of a tile: rows are (query, head of the group) pairs, heads fastest.
inline constexpr int kDecodeRows = 16;
inline constexpr int kPrefillRows = 128;     // dim <= 128
inline constexpr int kWidePrefillRows = 64;  // dim > 128
constexpr int prefill_rows(int dim) { return dim <= 128 ? kPrefillRows : kWidePrefillRows; }

struct AttentionCall {
  KvCache cache;
  TokenRows q;
  int32_t heads = 0;
  void* out = nullptr;
  AttentionSizes sizes;
  AttentionTables tables;
  void* workspace = nullptr;
  Stream stream = nullptr;
};

Status decode_attention(const AttentionCall& call);   // of the decode spans
Status prefill_attention(const AttentionCall& call);  // of the tiles, on tensor cores
Status plain_attention(const AttentionCall& call);    // of the tiles, one query each

}  // namespace valora::kernels::cuda
