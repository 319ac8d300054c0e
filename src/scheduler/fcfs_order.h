// The order that first come, first served means here; every policy begins with it.
#pragma once

#include <vector>

#include "scheduler/policy.h"

namespace valora::scheduler {

// Running requests, decodes before prefills, then waiting ones by priority and arrival.
std::vector<RequestIndex> fcfs_order(const PolicyState& state);

}  // namespace valora::scheduler
