// The identity of an adapter: what it computes and says, wherever it lies.
#pragma once

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Over canonical module names, ranks, scales, tensor dtypes and bytes, heads with their labels and
// settings, and the sidecar's texts; not over the path, the spelling of names or options without
// effect.
Digest digest_of_adapter(const AdapterSpec& spec, const ModuleTable& modules);

}  // namespace valora::adapters
