// What adapters make of token embeddings and logits. On CPUs, in the dtypes of the model; sums are
// in fp32 and rounded once. Invalid arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/placed_matrix.h"

namespace valora::ops {

// Of one adapter; null: it leaves this as it is. Low-rank products on the output layer are those of
// a linear (ops/lora.h).
struct VocabularyWeights {
  std::shared_ptr<const PlacedMatrix> embedding;       // [vocabulary, hidden], by rows
  std::shared_ptr<const PlacedMatrix> embedding_lora;  // Aᵀ over B, [vocabulary + hidden, rank]
  std::shared_ptr<const PlacedMatrix> embedding_rows;  // of embedding_ids
  std::shared_ptr<const PlacedMatrix> head;            // [vocabulary, hidden]; in a pool: panels
  std::shared_ptr<const PlacedMatrix> head_rows;       // of head_ids, by rows
  float scale = 1;                                     // of embedding_lora
  std::vector<int64_t> embedding_ids, head_ids;        // tokens
  int64_t tokens = 0;  // of its vocabulary; 0: as many as the base model's

  bool on_embedding() const { return embedding || embedding_lora || embedding_rows; }
  bool on_head() const { return head || head_rows; }
};

// x: [n, hidden], contiguous: the base model's embeddings of the tokens; becomes the adapter's, in
// place. tokens: int64 [n] in host memory. The coefficient multiplies the low-rank product.
void adapt_embeddings(const at::Tensor& x, const at::Tensor& tokens,
                      const VocabularyWeights& weights, float coefficient);
// logits: float [n, columns], contiguous: the base model's of hidden, [n, hidden], with at least as
// many columns as the adapter has tokens; those become the adapter's, in place. With weights.head,
// what was there counts for nothing.
void adapt_logits(const at::Tensor& hidden, const VocabularyWeights& weights,
                  const at::Tensor& logits);

// x Wᵀ in float for W in panels, into y: [n, W.rows()].
void matrix_product_cpu(const at::Tensor& x, const PlacedMatrix& w, const at::Tensor& y);

}  // namespace valora::ops
