// The pool's settings, from the memory plan and the options.
#pragma once

#include "api/options.h"
#include "engine/memory/memory_plan.h"
#include "memory/pool.h"

namespace valora {

memory::PoolConfig pool_config(const MemoryPlan& plan, const EngineOptions& options);

}  // namespace valora
