// The dtypes of the options and of the model's card.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "api/options.h"

namespace valora {

// Absent for kAuto: what models::load_model then chooses.
std::optional<at::ScalarType> scalar_type(ComputeDtype dtype);
std::string dtype_name(at::ScalarType type);

}  // namespace valora
