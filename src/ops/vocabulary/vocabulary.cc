#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/device/parallel.h"
#include "ops/vocabulary/vocabulary_targets.h"

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

// Adapts the embedding of one token. x: [hidden]
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
    const std::vector<float>& gain = weights_.embedding_gain;
    const T* low = row_of<T>(m, token);
    for (int64_t h = 0; h < hidden_; ++h) {
      const T* b = row_of<T>(m, vocabulary + h);
      float sum = 0;
      for (int64_t i = 0; i < rank; ++i)
        sum += static_cast<float>(low[i]) * static_cast<float>(b[i]);
      const float value = static_cast<float>(x[h]) + factor_ * sum;
      x[h] = static_cast<T>(gain.empty() ? value : gain[static_cast<size_t>(h)] * value);
    }
  }

  const VocabularyWeights& weights_;
  int64_t hidden_;
  float factor_;  // on the low-rank product
  std::unordered_map<int64_t, int64_t> rows_;
};

// Replaces the logits of single tokens.
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

// logits += scale · (hidden Aᵀ) Bᵀ. For many tokens and few rows of hidden states.
template <typename T>
void add_head_product(const at::Tensor& hidden, const PlacedMatrix& m, float scale,
                      const at::Tensor& logits) {
  const int64_t n = hidden.size(0), width = hidden.size(1), rank = m.columns(),
                tokens = logits.size(1);
  TORCH_CHECK(m.rows() == width + tokens, "a low-rank product of ", m.rows() - width,
              " tokens on logits of ", tokens);
  std::vector<float> low(static_cast<size_t>(n * rank));
  const T* x = hidden.const_data_ptr<T>();
  for (int64_t h = 0; h < width; ++h) {
    const T* a = row_of<T>(m, h);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t i = 0; i < rank; ++i)
        low[static_cast<size_t>(r * rank + i)] +=
            scale * static_cast<float>(x[r * width + h]) * static_cast<float>(a[i]);
  }
  float* y = logits.mutable_data_ptr<float>();
  torch_parallel()(0, tokens, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const T* b = row_of<T>(m, width + token);
      for (int64_t r = 0; r < n; ++r) {
        float sum = 0;
        for (int64_t i = 0; i < rank; ++i)
          sum += low[static_cast<size_t>(r * rank + i)] * static_cast<float>(b[i]);
        y[r * tokens + token] += sum;
      }
    }
  });
}

}  // namespace

void adapt_embeddings(const at::Tensor& x, const at::Tensor& tokens,
                      const VocabularyWeights& weights, float coefficient) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous() && tokens.is_cpu() && tokens.is_contiguous() &&
                  tokens.scalar_type() == at::kLong && tokens.dim() == 1 &&
                  tokens.size(0) == x.size(0),
              "embeddings ", x.sizes(), " of tokens ", tokens.sizes());
  const int64_t hidden = x.size(1);
  check(weights.embedding.get(), hidden, x.scalar_type());
  check(weights.embedding_rows.get(), hidden, x.scalar_type());
  if (weights.embedding_lora)
    check(weights.embedding_lora.get(), weights.embedding_lora->columns(), x.scalar_type());
  TORCH_CHECK(weights.embedding_gain.empty() ||
                  (weights.embedding_lora && std::ssize(weights.embedding_gain) == hidden),
              weights.embedding_gain.size(), " gains for embeddings of ", hidden);
  if (!x.is_cpu()) return adapt_embeddings_on_device(x, tokens, weights, coefficient);
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
  TORCH_CHECK(hidden.is_contiguous() && logits.is_contiguous() &&
                  logits.scalar_type() == at::kFloat && hidden.size(0) == logits.size(0),
              "logits ", logits.sizes(), " of hidden states ", hidden.sizes());
  check(weights.head.get(), hidden.size(1), hidden.scalar_type());
  check(weights.head_rows.get(), hidden.size(1), hidden.scalar_type());
  TORCH_CHECK(!weights.head || weights.head->rows() <= logits.size(1), "an output layer of ",
              weights.head ? weights.head->rows() : 0, " tokens for ", logits.size(1));
  if (!hidden.is_cpu()) return adapt_logits_on_device(hidden, weights, logits);
  if (const PlacedMatrix* head = weights.head.get()) {
    const bool whole = head->rows() == logits.size(1);
    const at::Tensor own =
        whole ? logits : at::empty({logits.size(0), head->rows()}, logits.options());
    if (head->form() == WeightForm::kPanels)
      matrix_product_cpu(hidden, *head, own);
    else
      own.copy_(at::linear(hidden, head->owned()));
    if (const PlacedMatrix* lora = weights.head_lora.get()) {
      check(lora, lora->columns(), hidden.scalar_type());
      with_float_type(hidden.scalar_type(), [&](auto t) {
        add_head_product<decltype(t)>(hidden, *lora, weights.head_scale, own);
      });
    }
    if (!whole) logits.narrow(1, 0, head->rows()).copy_(own);
  }
  if (weights.head_rows) replace_columns(hidden, *weights.head_rows, weights.head_ids, logits);
}

}  // namespace valora::ops
