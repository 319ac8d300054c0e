// Whom modes and targets have kept waiting for too long (VaLoRA §4.4.3).
#pragma once

#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

// The starving requests, those farthest beyond their tolerance first. Moves them to the front of
// the order, but decodes stay before prefills: a decode takes one token of the step, a prefill
// may take them all. They leave at least half of the step's sequences to starving prefills. If
// several tenants wait, waiting requests keep their order, or one that floods the queue with
// requests that starve would go before all others.
//
// tolerance: θ, of requests without one of their own. The costs must be known.
std::vector<RequestIndex> take_starving(const PolicyState& state, std::vector<RequestIndex>& order,
                                        Duration tolerance, TimePoint now);

}  // namespace valora::scheduler
