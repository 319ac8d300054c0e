#include "models/checkpoint_weights.h"

#include <algorithm>
#include <cmath>

#include "adapters/tensor_values.h"
#include "models/registry.h"

namespace valora::models {
namespace {

constexpr char kHead[] = "lm_head.weight";
constexpr char kHeadLinear[] = "lm_head";

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

// On the calling thread alone, some rows at a time.
Result<std::vector<float>> CheckpointWeights::row_norms(const std::string& name,
                                                        const TensorView& a, const TensorView& b,
                                                        float scale) const {
  const auto found = canonical(name + ".weight");
  if (!found || weights_.keeps_integers())
    return unprocessable("use_dora needs the norms of " + name +
                             ", whose weights are quantised; that cannot be served by this version",
                         "use_dora");
  constexpr int64_t kValuesTogether = 1 << 18;
  const int64_t out = b.shape[0], rank = b.shape[1], in = a.shape[1];
  const std::vector<float> low = adapters::floats_of(a), high = adapters::floats_of(b);
  const int64_t together = std::max<int64_t>(1, kValuesTogether / in);
  std::vector<float> norms(static_cast<size_t>(out));
  std::vector<float> row(static_cast<size_t>(in));
  for (int64_t first = 0; first < out; first += together) {
    const int64_t count = std::min(together, out - first);
    VALORA_TRY(stored, weights_.stored_values(*found, static_cast<size_t>(first * in),
                                              static_cast<size_t>(count * in)));
    const at::Tensor values = stored.to(weights_.dtype()).to(at::kFloat).contiguous();
    for (int64_t r = 0; r < count; ++r) {
      const float* w = values.const_data_ptr<float>() + r * in;
      std::copy(w, w + in, row.begin());
      for (int64_t i = 0; i < rank; ++i) {
        const float factor = scale * high[static_cast<size_t>((first + r) * rank + i)];
        const float* from = low.data() + i * in;
        for (int64_t c = 0; c < in; ++c) row[static_cast<size_t>(c)] += factor * from[c];
      }
      double sum = 0;
      for (const float value : row) sum += double{value} * value;
      norms[static_cast<size_t>(first + r)] = static_cast<float>(std::sqrt(sum));
    }
  }
  return norms;
}

}  // namespace valora::models
