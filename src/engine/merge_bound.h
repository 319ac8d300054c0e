// Decides which adapters may be merged into weights that other requests use.
#pragma once

#include "adapters/adapter_spec.h"

namespace valora {

// True if the adapter's change to the decoder's weights is small enough. In mixture mode a merged
// adapter is subtracted again from the tokens of other requests, which leaves rounding errors of
// its magnitude; infinities must not reach those requests. The spec must have values.
bool safe_to_merge(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules);

}  // namespace valora
