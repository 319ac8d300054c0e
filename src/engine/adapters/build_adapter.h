// Turns an adapter's folder into the weights that requests apply.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "adapters/adapter_spec.h"
#include "engine/adapters/adapter_store.h"
#include "engine/adapters/adapter_tensors.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// Builds an adapter whose panels the store brings into the pool on demand, or, without a store, one
// that owns its weights, copied to the model's dtype and device; the spec must then have values.
// heads: the tensors of the spec's heads, in their order (HeadStore::add()). limits: for reading
// its parts. merges: without a store. Errors: those of AdapterStore::add().
// Throws c10::Error or std::bad_alloc if memory runs out.
Result<std::shared_ptr<serving::LoadedAdapter>> build_adapter(
    std::shared_ptr<const adapters::AdapterSpec> shared, const adapters::ModuleTable& modules,
    at::ScalarType dtype, at::Device device, const adapters::AdapterLimits& limits = {},
    AdapterStore* store = nullptr,
    const std::vector<std::shared_ptr<const HeadTensors>>& heads = {},
    const MergeBound& merges = {});

}  // namespace valora
