// The adapters of a request as the scheduler sees them.
#pragma once

#include <span>

#include "scheduler/request.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// Sets what groups the request in batches, what may be merged for it, and which adapters of the
// decoder it costs.
void set_adapters(std::span<const AppliedAdapter> uses, scheduler::Request& request);

}  // namespace valora::serving
