// Opens a model's checkpoint to read some of its tensors.
#pragma once

#include <optional>
#include <string>

#include "models/registry.h"

namespace valora {

// Loads no tensor in advance: the model is on the meta device. nullopt if the folder has no
// complete checkpoint.
std::optional<models::LoadedModel> open_checkpoint(const models::ModelSource& source);

}  // namespace valora
