// Finds requests that modes, or their latency targets, have kept waiting for too long (VaLoRA
// §4.4.3).
#pragma once

#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

// Returns the starving requests, those farthest beyond their tolerance first, and moves them to the
// front of the order. Decodes stay before prefills, because a decode takes one token of the step
// while a prefill may take them all, but leave up to half of the step's sequences to starving
// prefills. If several tenants wait, waiting requests keep their order; otherwise a tenant flooding
// the queue with starving requests would go before all others.
//
// tolerance: θ, for requests without their own. The costs must be known.
std::vector<RequestIndex> take_starving(const PolicyState& state, std::vector<RequestIndex>& order,
                                        Duration tolerance, TimePoint now);

}  // namespace valora::scheduler
