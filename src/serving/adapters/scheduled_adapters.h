// The scheduler's view of a request's adapters.
#pragma once

#include <span>

#include "scheduler/request.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// Sets how the request is grouped in batches, which adapter may be merged for it, and which decoder
// adapters it costs.
void set_adapters(std::span<const AppliedAdapter> uses, scheduler::Request& request);

}  // namespace valora::serving
