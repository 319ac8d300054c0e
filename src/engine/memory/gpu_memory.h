// Estimates the GPU memory that steps need in addition to weights, pool, merged weights and caches.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "api/options.h"
#include "models/spec/model_spec.h"

namespace valora {

// Bytes, calculated for the largest step that the options allow: activations, logits, the largest
// piece of a vision tower, low-rank values, and memory held by libraries and captured steps.
// integers: the weights are integers.
int64_t gpu_working_bytes(const EngineOptions& options, const models::ModelSpec& spec,
                          at::ScalarType dtype, bool integers = false);

}  // namespace valora
