// Converts between the dtypes of the options, ATen and the model card.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "api/options.h"
#include "kernels/types/forms.h"
#include "models/weights/weights.h"

namespace valora {

// nullopt for kAuto: models::load_model() then chooses.
std::optional<at::ScalarType> scalar_type(ComputeDtype dtype);
std::string dtype_name(at::ScalarType type);
kernels::KvFormat kv_format_of(const EngineOptions& options);
// The dtype of the KV cache if activations have this dtype: "int8", "bfloat16", …
std::string kv_dtype_name(const EngineOptions& options, at::ScalarType dtype);
models::Rounding rounding_of(const EngineOptions& options);

}  // namespace valora
