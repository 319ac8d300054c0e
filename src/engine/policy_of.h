// Creates the scheduling policy that the options select.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/result.h"
#include "scheduler/policies/policy.h"

namespace valora {

// Options give times in seconds.
Result<std::unique_ptr<scheduler::Policy>> policy_of(const SchedulingOptions& options);

}  // namespace valora
