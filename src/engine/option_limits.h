// What options allow before anything is read.
#pragma once

#include "api/options.h"
#include "base/result.h"
#include "models/spec/model_spec.h"

namespace valora {

// kInvalidArgument names the option that is out of its range.
Status check_limits(const EngineOptions& options);
// What a model's layers need of the options.
Status check_needs(const EngineOptions& options, const models::ModelSpec& spec);

}  // namespace valora
