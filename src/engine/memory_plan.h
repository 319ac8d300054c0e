// How much memory the KV cache takes, and how long a sequence may be in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "models/model.h"

namespace valora {

struct MemoryPlan {
  int64_t block_bytes = 0;
  int32_t kv_blocks = 0;
  int max_model_len = 0;
  std::vector<std::string> notes;
};

// available_bytes: what the device has free for it. kInvalidArgument names the bytes that an option
// lacks.
Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               int64_t block_bytes, int64_t available_bytes);
// kInvalidArgument naming the bytes that the shadow of merged weights (engine/mode_switcher.h)
// lacks.
Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes);
// Free memory of the machine, by /proc/meminfo.
int64_t available_host_memory();

}  // namespace valora
