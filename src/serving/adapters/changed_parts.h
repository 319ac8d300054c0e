// Which parts of a model an adapter changes.
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/cards.h"

namespace valora::serving {

// The parts with at least one adapted linear, the decoder first. Embeddings and output layers are
// AdapterSpec::parts.
std::vector<ChangedPart> changed_parts(const adapters::AdapterSpec& spec,
                                       const adapters::ModuleTable& modules);

}  // namespace valora::serving
