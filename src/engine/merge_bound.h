// Which adapters may be merged into weights that requests of others run on.
#pragma once

#include "adapters/adapter_spec.h"

namespace valora {

// Whether the adapter's change of the decoder's weights is not too large. In mixture mode a merged
// adapter is subtracted again from the tokens of other requests, which leaves rounding errors of
// its magnitude, and infinities must not reach them. The spec must have values.
bool safe_to_merge(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules);

}  // namespace valora
