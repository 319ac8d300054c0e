// Matrices in a pool's blocks are read by CUDA kernels; small products are ATen's.
#include <algorithm>
#include <unordered_map>

#include "ops/vocabulary/vocabulary_targets.h"

namespace valora::ops {
namespace {

// Copied without waiting for it.
template <typename T>
at::Tensor copied_to(at::Device device, const std::vector<T>& values) {
  const at::Tensor host =
      at::empty({static_cast<int64_t>(values.size())},
                at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value).pinned_memory(true));
  std::ranges::copy(values, host.mutable_data_ptr<T>());
  return host.to(device, /*non_blocking=*/true);
}

// → [rows.size(), columns], in the matrix's dtype
at::Tensor rows_of(const PlacedMatrix& matrix, const std::vector<int64_t>& rows,
                   at::Device device) {
  const auto [least, most] = std::ranges::minmax(rows);
  TORCH_CHECK(least >= 0 && most < matrix.rows(), "rows ", least, " to ", most, " of a matrix of ",
              matrix.rows());
  const at::Tensor index = copied_to(device, rows);
  return matrix.layout() ? gather_rows_cuda(matrix, index) : matrix.owned().index_select(0, index);
}

at::Tensor rows_of(const PlacedMatrix& matrix, int64_t first, int64_t count, at::Device device) {
  if (!matrix.layout()) return matrix.owned().narrow(0, first, count);
  return gather_rows_cuda(matrix, at::arange(first, first + count,
                                             at::TensorOptions().dtype(at::kLong).device(device)));
}

// As row_product_cuda().
void row_product(const at::Tensor& x, const PlacedMatrix& matrix, int64_t first, int64_t count,
                 bool adds, const at::Tensor& y) {
  if (matrix.layout()) return row_product_cuda(x, matrix, first, count, adds, y);
  const at::Tensor product = at::mm(x, matrix.owned().narrow(0, first, count).to(at::kFloat).t());
  adds ? y.add_(product) : y.copy_(product);
}

void replace_rows(const at::Tensor& x, const std::vector<int64_t>& tokens,
                  const VocabularyWeights& weights) {
  std::unordered_map<int64_t, int64_t> row_of_token;
  for (size_t i = 0; i < weights.embedding_ids.size(); ++i)
    row_of_token.emplace(weights.embedding_ids[i], static_cast<int64_t>(i));
  std::vector<int64_t> places, rows;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (const auto it = row_of_token.find(tokens[i]); it != row_of_token.end())
      places.push_back(static_cast<int64_t>(i)), rows.push_back(it->second);
  if (rows.empty()) return;
  x.index_copy_(0, copied_to(x.device(), places),
                rows_of(*weights.embedding_rows, rows, x.device()));
}

void add_embedding_product(const at::Tensor& x, const std::vector<int64_t>& tokens,
                           const VocabularyWeights& weights, float coefficient) {
  const PlacedMatrix& m = *weights.embedding_lora;
  const int64_t hidden = x.size(1);
  const at::Tensor low = rows_of(m, tokens, x.device()).to(at::kFloat),
                   b = rows_of(m, m.rows() - hidden, hidden, x.device()).to(at::kFloat);
  at::Tensor sum = at::addmm(x.to(at::kFloat), low, b.t(), 1, weights.scale * coefficient);
  if (!weights.embedding_gain.empty()) sum.mul_(copied_to(x.device(), weights.embedding_gain));
  x.copy_(sum);
}

}  // namespace

void adapt_embeddings_on_device(const at::Tensor& x, const at::Tensor& tokens,
                                const VocabularyWeights& weights, float coefficient) {
  if (x.size(0) == 0) return;
  const int64_t* const ids = tokens.const_data_ptr<int64_t>();
  const std::vector<int64_t> list(ids, ids + tokens.size(0));
  if (weights.embedding) x.copy_(rows_of(*weights.embedding, list, x.device()));
  if (weights.embedding_rows) replace_rows(x, list, weights);
  if (weights.embedding_lora) add_embedding_product(x, list, weights, coefficient);
}

void adapt_logits_on_device(const at::Tensor& hidden, const VocabularyWeights& weights,
                            const at::Tensor& logits) {
  if (hidden.size(0) == 0) return;
  const at::Tensor states = hidden.to(at::kFloat);
  if (const PlacedMatrix* head = weights.head.get()) {
    const int64_t tokens = head->rows(), width = hidden.size(1);
    const at::Tensor own = logits.narrow(1, 0, tokens);
    row_product(states, *head, 0, tokens, /*adds=*/false, own);
    if (const PlacedMatrix* lora = weights.head_lora.get()) {
      TORCH_CHECK(lora->rows() == width + tokens, "a low-rank product of ", lora->rows() - width,
                  " tokens on logits of ", tokens);
      const at::Tensor a = rows_of(*lora, 0, width, hidden.device()).to(at::kFloat);
      const at::Tensor low = at::mm(states, a).mul_(weights.head_scale);
      row_product(low, *lora, width, tokens, /*adds=*/true, own);
    }
  }
  if (const PlacedMatrix* rows = weights.head_rows.get()) {
    const at::Tensor w = rows_of(*rows, 0, rows->rows(), hidden.device()).to(at::kFloat);
    logits.index_copy_(1, copied_to(hidden.device(), weights.head_ids), at::mm(states, w.t()));
  }
}

}  // namespace valora::ops
