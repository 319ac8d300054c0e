#include "lab/ops/paged_sequences.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "lab/ops/random_tensors.h"

namespace valora::bench {
namespace {

constexpr int64_t kBlockTokens = ops::KvArena::kBlockTokens;

int64_t blocks_of(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// [batch, kv_heads, n, dim] → [batch * n, kv_heads, dim] of the flat batch.
at::Tensor rows_of(const at::Tensor& x) { return x.transpose(1, 2).flatten(0, 1).contiguous(); }

}  // namespace

PagedSequences::PagedSequences(const AttentionShape& shape, int64_t layers, ops::KvFormat format)
    : shape_(shape),
      q_(normal_tensor({shape.batch * shape.queries, shape.heads, shape.dim}, at::kBFloat16, 1, 7)),
      keys_(normal_tensor({shape.batch, shape.kv_heads, shape.keys(), shape.dim}, at::kBFloat16, 1,
                          8)),
      values_(normal_tensor({shape.batch, shape.kv_heads, shape.keys(), shape.dim}, at::kBFloat16,
                            1, 9)),
      arena_(shape.batch * blocks_of(shape.keys()),
             {layers, shape.kv_heads, shape.dim, at::kBFloat16, format}, at::kCPU) {
  k_ = rows_of(keys_.narrow(2, shape.context, shape.queries));
  v_ = rows_of(values_.narrow(2, shape.context, shape.queries));
  std::vector<int32_t> order(static_cast<size_t>(shape.batch * blocks_of(shape.keys())));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(),
               std::mt19937(1));  // scattered blocks, as in a running server
  for (int64_t s = 0; s < shape.batch; ++s)
    tables_.emplace_back(order.begin() + s * blocks_of(shape.keys()),
                         order.begin() + (s + 1) * blocks_of(shape.keys()));
  for (int64_t s = 0; s < shape.batch; ++s)
    spans_.push_back({s * shape.queries, shape.queries, shape.context, tables_[s].data()});
  if (shape.context == 0) return;
  // Fills the first layer's cache with a step over the context, using one query head per KV head,
  // and discards the result. The other layers are copies.
  for (int64_t s = 0; s < shape.batch; ++s) {
    const ops::QuerySpan span{0, shape.context, 0, tables_[s].data()};
    const auto part = [&](const at::Tensor& x) {
      return rows_of(x.narrow(0, s, 1).narrow(2, 0, shape.context));
    };
    const at::Tensor k = part(keys_);
    ops::paged_attention(k, k, part(values_), arena_, 0, std::span(&span, 1));
  }
  for (int64_t layer = 1; layer < layers; ++layer)
    arena_.data().select(1, layer).copy_(arena_.data().select(1, 0));
}

at::Tensor PagedSequences::attend(int64_t layer) const {
  return ops::paged_attention(q_, k_, v_, arena_, layer, spans_);
}

}  // namespace valora::bench
