// The identity of an adapter: the digest of its content, independent of its path.
#pragma once

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Covers canonical module names, ranks, scales, tensor dtypes and bytes, heads with their labels
// and settings, and the sidecar's texts. Excludes the path, the spelling of names, and options
// without effect.
Digest digest_of_adapter(const AdapterSpec& spec, const ModuleTable& modules);

// The same, but with the file's identity in place of the LoRA tensors' bytes.
Digest digest_of_headers(const AdapterSpec& spec, const ModuleTable& modules,
                         const FileIdentity& file);

// Extends `before`, the digest of an adapter's panels, heads and texts, by its parts, shifts and
// gains.
Digest digest_with_whole_values(const Digest& before, const AdapterSpec& spec,
                                const ModuleTable& modules);

}  // namespace valora::adapters
