// Sequences in a KvArena, as in an engine, and the same keys and values as contiguous tensors for
// ATen.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "ops/attention/attention.h"

namespace valora::bench {

struct AttentionShape {
  int64_t batch = 1;
  int64_t context = 0;  // cached tokens per sequence before the step
  int64_t queries = 1;  // tokens per sequence in the step
  int64_t heads = 0, kv_heads = 0, dim = 0;

  int64_t keys() const { return context + queries; }
};

class PagedSequences {
 public:
  // bf16. All layers have equal values; rotating over enough of them finds the KV cache cold.
  PagedSequences(const AttentionShape& shape, int64_t layers,
                 ops::KvFormat format = ops::KvFormat::kPlain);

  // Runs the step in one layer. Returns [tokens, heads * dim].
  at::Tensor attend(int64_t layer) const;
  // All keys and values, including those of the step: [batch, kv_heads, keys, dim].
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }
  const at::Tensor& queries() const { return q_; }  // [tokens, heads, dim]

 private:
  AttentionShape shape_;
  at::Tensor q_, k_, v_, keys_, values_;
  ops::KvArena arena_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<ops::QuerySpan> spans_;
};

}  // namespace valora::bench
