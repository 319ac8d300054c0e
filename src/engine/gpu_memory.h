// What steps need of a GPU's memory beside weights, pool, merged weights and caches.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "api/options.h"
#include "models/spec/model_spec.h"

namespace valora {

// Bytes, by arithmetic, for the largest step of these options: activations of its tokens, logits,
// the largest piece of a vision tower, low-rank values, and what libraries and captured steps keep.
int64_t gpu_working_bytes(const EngineOptions& options, const models::ModelSpec& spec,
                          at::ScalarType dtype);

}  // namespace valora
