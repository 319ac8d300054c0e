// The scheduling policy that options ask for.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/result.h"
#include "scheduler/policies/policy.h"

namespace valora {

// Times of the options are in seconds.
Result<std::unique_ptr<scheduler::Policy>> policy_of(const SchedulingOptions& options);

}  // namespace valora
