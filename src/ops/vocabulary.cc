#include "ops/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/parallel.h"

namespace valora::ops {
namespace {

template <typename Body>
void with_float_type(at::ScalarType dtype, Body&& body) {
  if (dtype == at::kFloat) return body(float{});
  TORCH_CHECK(dtype == at::kBFloat16, "adapters of embeddings are computed in float and bf16");
  body(c10::BFloat16{});
}

template <typename T>
const T* row_of(const PlacedMatrix& matrix, int64_t index) {
  return reinterpret_cast<const T*>(matrix.row(index));
}

void check(const PlacedMatrix* matrix, int64_t columns, at::ScalarType dtype) {
  TORCH_CHECK(!matrix || (matrix->columns() == columns && matrix->dtype() == dtype),
              "an adapter's matrix of ", matrix ? matrix->columns() : 0, " columns for a width of ",
              columns, ", or of another dtype");
}

// One token. x: [hidden]
template <typename T>
class TokenEmbedding {
 public:
  TokenEmbedding(const VocabularyWeights& weights, int64_t hidden, float factor)
      : weights_(weights), hidden_(hidden), factor_(factor) {
    for (size_t i = 0; i < weights.embedding_ids.size() && weights.embedding_rows; ++i)
      rows_.emplace(weights.embedding_ids[i], static_cast<int64_t>(i));
  }

  void adapt(int64_t token, T* x) const {
    if (weights_.embedding) copy(row_of<T>(*weights_.embedding, token), x);
    if (const auto it = rows_.find(token); it != rows_.end())
      copy(row_of<T>(*weights_.embedding_rows, it->second), x);
    if (weights_.embedding_lora) add_product(*weights_.embedding_lora, token, x);
  }

 private:
  void copy(const T* from, T* to) const {
    std::memcpy(to, from, static_cast<size_t>(hidden_) * sizeof(T));
  }

  void add_product(const PlacedMatrix& m, int64_t token, T* x) const {
    const int64_t rank = m.columns(), vocabulary = m.rows() - hidden_;
    const T* low = row_of<T>(m, token);
    for (int64_t h = 0; h < hidden_; ++h) {
      const T* b = row_of<T>(m, vocabulary + h);
      float sum = 0;
      for (int64_t i = 0; i < rank; ++i)
        sum += static_cast<float>(low[i]) * static_cast<float>(b[i]);
      x[h] = static_cast<T>(static_cast<float>(x[h]) + factor_ * sum);
    }
  }

  const VocabularyWeights& weights_;
  int64_t hidden_;
  float factor_;  // of the product
  std::unordered_map<int64_t, int64_t> rows_;
};

// The logits of single tokens.
void replace_columns(const at::Tensor& hidden, const PlacedMatrix& rows,
                     const std::vector<int64_t>& ids, const at::Tensor& logits) {
  const at::Tensor gathered = at::empty({rows.rows(), rows.columns()}, hidden.options());
  for (int64_t i = 0; i < rows.rows(); ++i)
    std::memcpy(static_cast<std::byte*>(gathered.data_ptr()) +
                    static_cast<size_t>(i) * gathered.nbytes() / static_cast<size_t>(rows.rows()),
                rows.row(i), gathered.nbytes() / static_cast<size_t>(rows.rows()));
  const at::Tensor index = at::tensor(ids, at::kLong);
  logits.index_copy_(1, index, at::mm(hidden.to(at::kFloat), gathered.to(at::kFloat).t()));
}

}  // namespace

void adapt_embeddings(const at::Tensor& x, const at::Tensor& tokens,
                      const VocabularyWeights& weights, float coefficient) {
  TORCH_CHECK(x.is_cpu() && x.dim() == 2 && x.is_contiguous() && tokens.is_cpu() &&
                  tokens.is_contiguous() && tokens.scalar_type() == at::kLong &&
                  tokens.dim() == 1 && tokens.size(0) == x.size(0),
              "embeddings ", x.sizes(), " of tokens ", tokens.sizes());
  const int64_t hidden = x.size(1);
  check(weights.embedding.get(), hidden, x.scalar_type());
  check(weights.embedding_rows.get(), hidden, x.scalar_type());
  if (weights.embedding_lora)
    check(weights.embedding_lora.get(), weights.embedding_lora->columns(), x.scalar_type());
  with_float_type(x.scalar_type(), [&](auto t) {
    using T = decltype(t);
    const TokenEmbedding<T> embedding(weights, hidden, weights.scale * coefficient);
    const int64_t* ids = tokens.const_data_ptr<int64_t>();
    T* rows = x.mutable_data_ptr<T>();
    torch_parallel()(0, x.size(0), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) embedding.adapt(ids[i], rows + i * hidden);
    });
  });
}

void adapt_logits(const at::Tensor& hidden, const VocabularyWeights& weights,
                  const at::Tensor& logits) {
  TORCH_CHECK(hidden.is_cpu() && hidden.is_contiguous() && logits.is_contiguous() &&
                  logits.scalar_type() == at::kFloat && hidden.size(0) == logits.size(0),
              "logits ", logits.sizes(), " of hidden states ", hidden.sizes());
  check(weights.head.get(), hidden.size(1), hidden.scalar_type());
  check(weights.head_rows.get(), hidden.size(1), hidden.scalar_type());
  if (const PlacedMatrix* head = weights.head.get()) {
    TORCH_CHECK(head->rows() <= logits.size(1), "an output layer of ", head->rows(), " tokens for ",
                logits.size(1));
    const bool whole = head->rows() == logits.size(1);
    const at::Tensor own =
        whole ? logits : at::empty({logits.size(0), head->rows()}, logits.options());
    if (head->form() == WeightForm::kPanels)
      matrix_product_cpu(hidden, *head, own);
    else
      own.copy_(at::linear(hidden, head->owned()));
    if (!whole) logits.narrow(1, 0, head->rows()).copy_(own);
  }
  if (weights.head_rows) replace_columns(hidden, *weights.head_rows, weights.head_ids, logits);
}

}  // namespace valora::ops
