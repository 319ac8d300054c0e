// What options allow before anything is read.
#pragma once

#include "api/options.h"
#include "base/result.h"

namespace valora {

// kInvalidArgument names the option that is out of its range.
Status check_limits(const EngineOptions& options);

}  // namespace valora
