// Checks of options before anything is read.
#pragma once

#include "api/options.h"
#include "base/result.h"
#include "models/spec/model_spec.h"

namespace valora {

// kInvalidArgument naming the option that is out of range.
Status check_limits(const EngineOptions& options);
// Checks options against the requirements of a model's layers.
Status check_needs(const EngineOptions& options, const models::ModelSpec& spec);

}  // namespace valora
