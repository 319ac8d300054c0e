#include "engine/inspect/open_checkpoint.h"

#include <utility>

#include "models/weights/weights.h"

namespace valora {

std::optional<models::LoadedModel> open_checkpoint(const models::ModelSource& source) {
  const auto config = models::read_model_config(source);
  auto loaded = models::load_model(source, std::nullopt, at::Device(at::kMeta));
  if (!config.ok() || !loaded.ok()) return std::nullopt;
  models::Weights& weights = *loaded->weights;
  const auto type =
      models::resolve_dtype(std::nullopt, *config, weights.stored_dtype(), at::Device(at::kCPU));
  if (!type.ok()) return std::nullopt;
  weights.set_target(*type, at::Device(at::kCPU));
  return std::move(loaded).value();
}

}  // namespace valora
