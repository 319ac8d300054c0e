// Attention of a few query tokens a sequence straight from its KV blocks, and the writing of them.
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/bf16.h"

namespace valora::kernels {

// One layer of the block arena: block b's K of token i is at data + b * block_stride + i * kv_heads * dim,
// its V at data + b * block_stride + v_offset + the same. T is float or bf16.
template <typename T>
struct KvLayer {
  T* data = nullptr;
  int64_t block_stride = 0;
  int64_t v_offset = 0;
  int64_t block_tokens = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;
};

// One sequence's part of the flat batch: query rows [begin, begin + queries) stand at positions
// context … context + queries - 1 of the sequence.
struct QuerySpan {
  int64_t begin = 0;
  int64_t queries = 0;
  int64_t context = 0;           // tokens whose KV was there before this step
  const int32_t* blocks = nullptr;  // its block table
};

// Copies the new tokens' k and v rows [kv_heads * dim] (ldk elements apart) into their blocks.
template <typename T>
void store_kv(const T* k, const T* v, int64_t ldk, std::span<const QuerySpan> spans, const KvLayer<T>& layer,
              const ParallelFor& parallel);

// o[t, h] = softmax(scale · q[t, h] · Kᵀ) V over the keys up to the token's own position; grouped heads;
// online softmax in fp32. q, o: [tokens, heads * dim] contiguous rows.
template <typename T>
void paged_attention(const T* q, int64_t ldq, T* o, int64_t ldo, int64_t heads, float scale,
                     std::span<const QuerySpan> spans, const KvLayer<T>& layer, const ParallelFor& parallel);

}  // namespace valora::kernels
