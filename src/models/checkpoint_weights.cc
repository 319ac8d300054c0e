#include "models/checkpoint_weights.h"

#include <algorithm>

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

}  // namespace valora::models
