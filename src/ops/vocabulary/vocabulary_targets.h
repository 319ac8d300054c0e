// The parts of ops/vocabulary/vocabulary.h by target. The caller has checked the arguments.
#pragma once

#include "ops/vocabulary/vocabulary.h"

namespace valora::ops {

// y = x Wᵀ in float for W in panels. y: [n, W.rows()].
void matrix_product_cpu(const at::Tensor& x, const PlacedMatrix& w, const at::Tensor& y);

// On devices other than CPUs. tokens: in host memory.
void adapt_embeddings_on_device(const at::Tensor& x, const at::Tensor& tokens,
                                const VocabularyWeights& weights, float coefficient);
void adapt_logits_on_device(const at::Tensor& hidden, const VocabularyWeights& weights,
                            const at::Tensor& logits);

// For matrices in a pool's blocks. rows: int64 on the device, in range. → [count, columns]
at::Tensor gather_rows_cuda(const PlacedMatrix& matrix, const at::Tensor& rows);
// y = x Wᵀ, or y += x Wᵀ if `adds`, for W = rows [first, first + count) of the matrix. x: float [n,
// columns], contiguous; y: float [n, count], with contiguous rows.
void row_product_cuda(const at::Tensor& x, const PlacedMatrix& matrix, int64_t first, int64_t count,
                      bool adds, const at::Tensor& y);

}  // namespace valora::ops
