// First-come, first-served order, the starting point of every policy.
#pragma once

#include <vector>

#include "scheduler/policies/policy.h"

namespace valora::scheduler {

// Running requests, decodes before prefills, then waiting requests by priority and arrival.
std::vector<RequestIndex> fcfs_order(const PolicyState& state);

}  // namespace valora::scheduler
