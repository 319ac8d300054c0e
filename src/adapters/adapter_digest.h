// The identity of an adapter: the digest of its content, independent of its path.
#pragma once

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Covers canonical module names, ranks, scales, tensor dtypes and bytes, heads with their labels
// and settings, and the sidecar's texts. Does not cover the path, the spelling of names, or options
// without effect.
Digest digest_of_adapter(const AdapterSpec& spec, const ModuleTable& modules);

// Covers the same, but instead of the LoRA tensors' bytes the identity of their file.
Digest digest_of_headers(const AdapterSpec& spec, const ModuleTable& modules,
                         const FileIdentity& file);

// The digest of an adapter whose panels, heads and texts have this one, with its parts and shifts.
Digest digest_with_whole_values(const Digest& before, const AdapterSpec& spec,
                                const ModuleTable& modules);

}  // namespace valora::adapters
