#include "models/weights/checkpoint_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "adapters/tensors/tensor_values.h"
#include "models/registry.h"

namespace valora::models {
namespace {

constexpr char kHead[] = "lm_head.weight";
constexpr char kHeadLinear[] = "lm_head";

// y += factor · x
void add_scaled(float factor, const float* x, std::span<float> y) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

// [rows, columns] → [columns, rows]
std::vector<float> transposed(const TensorView& x) {
  const std::vector<float> from = adapters::floats_of(x);
  const auto rows = static_cast<size_t>(x.shape[0]), columns = static_cast<size_t>(x.shape[1]);
  std::vector<float> to(from.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  return to;
}

// Calls body(index, row) for each of `count` rows of `width` values. body may change the row.
template <typename Body>
Status each_row(const Weights::ReadRows& read, int64_t count, int64_t width, const Body& body) {
  constexpr int64_t kValuesTogether = 1 << 18;
  const int64_t together = std::max<int64_t>(1, kValuesTogether / width);
  for (int64_t first = 0; first < count; first += together) {
    VALORA_TRY(rows, read(first, std::min(together, count - first)));
    const at::Tensor own = rows.clone();
    float* const values = own.mutable_data_ptr<float>();
    for (int64_t r = 0; r < own.size(0); ++r)
      body(first + r, std::span(values + r * width, static_cast<size_t>(width)));
  }
  return {};
}

}  // namespace

bool shares_embeddings(const LoadedModel& loaded) {
  return !loaded.weights->has_linear(kHeadLinear) ||
         std::ranges::any_of(loaded.unused_tensors,
                             [](const std::string& name) { return name.ends_with(kHead); });
}

CheckpointWeights::CheckpointWeights(const LoadedModel& loaded)
    : weights_(*loaded.weights),
      modules_(loaded.model->spec().modules),
      aliases_(loaded.model->spec().aliases) {
  if (!shares_embeddings(loaded)) return;
  for (const adapters::Module& module : modules_.modules())
    if (module.name.ends_with(".embed_tokens")) embeddings_ = module.name + ".weight";
}

std::optional<std::string> CheckpointWeights::canonical(const std::string& name) const {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  if (const auto module = modules_.find(name.substr(0, dot))) {
    std::string found = modules_.modules()[*module].name + name.substr(dot);
    if (found == kHead && !embeddings_.empty()) found = embeddings_;
    return weights_.has(found) ? std::optional(found) : std::nullopt;
  }
  if (weights_.has(name)) return name;
  for (const adapters::PrefixAlias& alias : aliases_) {
    if (!name.starts_with(alias.alias)) continue;
    std::string found = alias.canonical + name.substr(alias.alias.size());
    if (weights_.has(found)) return found;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> CheckpointWeights::shape_of(const std::string& name) const {
  const auto found = canonical(name);
  return found ? std::optional(weights_.shape_of(*found)) : std::nullopt;
}

Result<bool> CheckpointWeights::equal(const std::string& name, size_t first,
                                      const TensorView& piece) const {
  const auto found = canonical(name);
  if (!found || !scalar_type(piece.dtype)) return false;
  VALORA_TRY(stored, weights_.stored_values(*found, first, static_cast<size_t>(piece.shape[0])));
  return at::equal(stored.to(weights_.dtype()), tensor_of(piece).to(weights_.dtype()));
}

Result<std::vector<float>> CheckpointWeights::values_of(const std::string& name) const {
  const auto found = canonical(name);
  if (!found) return internal("the checkpoint has no " + name);
  int64_t count = 1;
  for (const int64_t size : weights_.shape_of(*found)) count *= size;
  VALORA_TRY(stored, weights_.stored_values(*found, 0, static_cast<size_t>(count)));
  const at::Tensor values = stored.to(weights_.dtype()).to(at::kFloat).contiguous();
  return std::vector<float>(values.const_data_ptr<float>(), values.const_data_ptr<float>() + count);
}

Result<Weights::ReadRows> CheckpointWeights::rows_of(const std::string& name) const {
  const auto index = modules_.find(name);
  if (!index) return internal("the model has no " + name);
  const adapters::Module& module = modules_.modules()[static_cast<size_t>(*index)];
  if (module.kind == adapters::ModuleKind::kEmbedding)  // its rows are the module's inputs
    return weights_.served_rows(module.name, module.in, module.out, LinearPart::kOther);
  const bool is_head = module.kind == adapters::ModuleKind::kHead;
  std::string linear = module.name;
  if (is_head && tied()) linear = embeddings_.substr(0, embeddings_.rfind('.'));
  if (!weights_.has_linear(linear)) return internal("the checkpoint has no " + linear);
  return weights_.served_rows(linear, module.out, module.in,
                              is_head               ? LinearPart::kHead
                              : module.in_decoder() ? LinearPart::kDecoder
                                                    : LinearPart::kOther);
}

Result<std::vector<float>> CheckpointWeights::row_norms(const std::string& name,
                                                        const TensorView& a, const TensorView& b,
                                                        float scale) const {
  VALORA_TRY(rows, rows_of(name));
  std::vector<float> norms;
  const int64_t rank = a.shape[0], in = a.shape[1];
  const std::vector<float> low = adapters::floats_of(a), high = adapters::floats_of(b);
  VALORA_CHECK(each_row(rows, b.shape[0], in, [&](int64_t out, std::span<float> row) {
    for (int64_t i = 0; i < rank; ++i)
      add_scaled(high[static_cast<size_t>(out * rank + i)] * scale, low.data() + i * in, row);
    double sum = 0;
    for (const float value : row) sum += double{value} * value;
    norms.push_back(static_cast<float>(std::sqrt(sum)));
  }));
  return norms;
}

Result<std::vector<float>> CheckpointWeights::column_norms(const std::string& name,
                                                           const TensorView& a, const TensorView& b,
                                                           float scale) const {
  VALORA_TRY(rows, rows_of(name));
  const int64_t hidden = b.shape[0], rank = b.shape[1], tokens = a.shape[1];
  const std::vector<float> low = adapters::floats_of(a), high = transposed(b);
  std::vector<double> sums(static_cast<size_t>(hidden));
  VALORA_CHECK(each_row(rows, tokens, hidden, [&](int64_t token, std::span<float> row) {
    for (int64_t i = 0; i < rank; ++i)
      add_scaled(low[static_cast<size_t>(i * tokens + token)] * scale, high.data() + i * hidden,
                 row);
    for (size_t h = 0; h < row.size(); ++h) sums[h] += double{row[h]} * row[h];
  }));
  std::vector<float> norms;
  for (const double sum : sums) norms.push_back(static_cast<float>(std::sqrt(sum)));
  return norms;
}

}  // namespace valora::models
