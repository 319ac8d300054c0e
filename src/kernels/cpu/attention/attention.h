// Attention on CPUs: softmax(scale · q Kᵀ) V with grouped heads, online softmax in fp32 over chunks
// of keys, the two products on the instruction set's tiles.
#pragma once

#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/cpu/attention/kv_layout.h"

namespace valora::kernels {

// Rows of one head's values side by side; tokens `ld` elements apart, heads `dim`.
template <typename T>
struct Heads {
  T* data = nullptr;
  int64_t ld = 0;
};

// Each query attends to the keys up to its own position, straight from the block table: prefill
// chunks and decodes in one launch. q, o: [tokens, heads, dim]. Long sequences with few queries are
// split over their keys, always at the same places, so that an answer does not depend on what else
// is in the batch.
template <typename T>
void paged_attention(Heads<const T> q, Heads<T> o, int64_t heads, float scale,
                     std::span<const QuerySpan> spans, const KvLayer<T>& layer,
                     const ParallelFor& parallel);

// Rows attend within [ends[i-1], ends[i]) only, both ways: the vision towers' images, frames and
// windows.
template <typename T>
void block_attention(Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> o,
                     int64_t heads, int64_t dim, float scale, std::span<const int64_t> ends,
                     const ParallelFor& parallel);

}  // namespace valora::kernels
