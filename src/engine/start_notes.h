// What the start of an engine tells its user of formats and memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/options.h"
#include "engine/memory_plan.h"
#include "models/registry.h"

namespace valora {

// Bytes beside the pool.
struct ReservedMemory {
  bool shadow = false;       // merged weights have memory of their own
  int64_t shadow_bytes = 0;  // of these
  int64_t gpu_bytes = 0;     // of a GPU, for activations, workspaces and captured steps
};

// Those of the plan, and further ones: a sentence each.
std::vector<std::string> memory_notes(const EngineOptions& options,
                                      const models::LoadedModel& loaded, const MemoryPlan& plan,
                                      const ReservedMemory& reserved);

}  // namespace valora
