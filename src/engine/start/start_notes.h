// What the start of an engine checks of its options, and notes on formats and memory that it
// reports to the user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "engine/memory/memory_plan.h"
#include "models/registry.h"
#include "models/spec/model_spec.h"

namespace valora {

// Memory reserved in addition to the pool.
struct ReservedMemory {
  bool shadow = false;       // merged weights have separate memory
  int64_t shadow_bytes = 0;  // size of that memory
  int64_t gpu_bytes = 0;     // GPU memory for activations, workspaces and captured steps
};

// The plan's notes and additional ones, one sentence each.
std::vector<std::string> memory_notes(const EngineOptions& options,
                                      const models::LoadedModel& loaded, const MemoryPlan& plan,
                                      const ReservedMemory& reserved);

// One sentence for each limit of the process's control groups that a default follows. root: as of
// memory_limit().
std::vector<std::string> group_notes(const EngineOptions& options, const std::string& root = {});

// Before anything is read: kInvalidArgument naming the option that is out of range.
Status check_limits(const EngineOptions& options);
// Checks options against the requirements of a model's layers.
Status check_needs(const EngineOptions& options, const models::ModelSpec& spec);

}  // namespace valora
