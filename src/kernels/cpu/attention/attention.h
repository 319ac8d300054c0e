// Attention on CPUs: softmax(scale · q Kᵀ) V with grouped query heads. The softmax is computed
// online, in fp32, over chunks of keys. Both products use the tiles of the current instruction set.
// T is float or bf16; outputs are rounded to T once. Arguments are not checked.
#pragma once

#include <cstdint>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/attention/byte_layout.h"
#include "kernels/cpu/attention/kv_layout.h"

namespace valora::kernels {

// A [tokens, heads, dim] tensor. Strides in elements: ld per token, dim per head, 1 within a head.
template <typename T>
struct Heads {
  T* data = nullptr;
  int64_t ld = 0;
};

// Attention over the paged KV cache, for prefill chunks and decodes in one launch. Each query
// attends to all keys up to its own position, or to the end of its joint range (visible_from),
// including keys of the current step: call store_kv() first. A window (first_visible) excludes
// earlier keys; blocks to which no query of a tile attends are not read. q, o: [tokens, heads,
// dim]; heads is a multiple of layer.kv_heads. Long sequences with few queries are split over their
// keys. Split points depend only on the sequence, so results do not depend on the rest of the
// batch.
template <typename T>
void paged_attention(Heads<const T> q, Heads<T> o, int64_t heads, float scale, int64_t window,
                     std::span<const QuerySpan> spans, const KvLayer<T>& layer,
                     const ParallelFor& parallel);
// The same over an 8-bit cache: call store_kv_bytes() first.
template <typename T>
void paged_attention(Heads<const T> q, Heads<T> o, int64_t heads, float scale, int64_t window,
                     std::span<const QuerySpan> spans, const ByteKvLayer& layer,
                     const ParallelFor& parallel);

}  // namespace valora::kernels
