// From what an adapter's folder holds to what requests apply.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "adapters/adapter_spec.h"
#include "engine/adapter_store.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// An adapter whose panels the store brings to the pool when they are needed, or, without a store,
// one that owns its weights, copied to the model's dtype and device: then the spec has values.
// Heads become float. limits: of reading its parts. Errors are those of AdapterStore::add();
// kUnprocessable for what is served on CPUs only. Throws c10::Error or std::bad_alloc
// if memory runs out.
Result<std::shared_ptr<serving::LoadedAdapter>> build_adapter(
    std::shared_ptr<const adapters::AdapterSpec> shared, const adapters::ModuleTable& modules,
    at::ScalarType dtype, at::Device device, const adapters::AdapterLimits& limits = {},
    AdapterStore* store = nullptr);

}  // namespace valora
