// Adapters' changes to token embeddings and logits, in the model's dtypes; sums are in fp32 and
// rounded once. On a GPU nothing waits for it. Invalid arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/weights/placed_matrix.h"

namespace valora::ops {

// One adapter's matrices; null: the adapter does not change this. Low-rank products on the output
// layer are handled like those of any linear (ops/lora/lora.h).
struct VocabularyWeights {
  std::shared_ptr<const PlacedMatrix> embedding;       // [vocabulary, hidden], by rows
  std::shared_ptr<const PlacedMatrix> embedding_lora;  // Aᵀ over B, [vocabulary + hidden, rank]
  std::shared_ptr<const PlacedMatrix> embedding_rows;  // rows for embedding_ids
  std::shared_ptr<const PlacedMatrix> head;            // [vocabulary, hidden]; in a pool: panels
  std::shared_ptr<const PlacedMatrix> head_rows;       // rows for head_ids
  std::shared_ptr<const PlacedMatrix> head_lora;       // Aᵀ over B, [hidden + vocabulary, rank]
  float scale = 1, head_scale = 1;                     // of embedding_lora and head_lora
  // [hidden]: multiplies embeddings, the low-rank product included; empty: no factors.
  std::vector<float> embedding_gain;
  std::vector<int64_t> embedding_ids, head_ids;  // tokens
  int64_t tokens = 0;  // vocabulary size of the adapter; 0: the base model's

  bool on_embedding() const { return embedding || embedding_lora || embedding_rows; }
  bool on_head() const { return head || head_rows; }
};

// x: [n, hidden], contiguous: the base model's embeddings of the tokens, replaced by the adapter's.
// tokens: int64 [n] in host memory. The coefficient multiplies the low-rank product.
void adapt_embeddings(const at::Tensor& x, const at::Tensor& tokens,
                      const VocabularyWeights& weights, float coefficient);
// logits: float [n, columns], contiguous: the base model's logits for hidden, [n, hidden], with at
// least as many columns as the adapter has tokens; those columns are replaced by the adapter's. If
// weights.head is set, their old values are ignored.
void adapt_logits(const at::Tensor& hidden, const VocabularyWeights& weights,
                  const at::Tensor& logits);

}  // namespace valora::ops
