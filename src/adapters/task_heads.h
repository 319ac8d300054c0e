// An adapter's task heads: tensors from its file, labels and settings from its sidecar.
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/folder/adapter_contents.h"
#include "adapters/folder/sidecar.h"

namespace valora::adapters {

// By name, ascending. Defaults for what the sidecar omits: labels LABEL_i; regression for one row,
// single-label classification for more (as in transformers). Error: kUnprocessable naming the head.
Result<std::vector<TaskHead>> resolve_heads(const AdapterContents& contents, const Sidecar& sidecar,
                                            int64_t hidden_size);

}  // namespace valora::adapters
