// Chooses the size of the KV cache and the maximum sequence length.
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

// available_bytes: free memory of the device. Without --kv-cache-memory the cache takes at most a
// quarter of it. kInvalidArgument if an option does not fit; the message has the number of bytes.
// notes: adjustments to report to the user.
Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               int64_t block_bytes, int64_t available_bytes);
// kInvalidArgument if the shadow of merged weights (engine/mode_switcher.h) does not fit; the
// message has the number of missing bytes.
Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes);
// Free memory of the host in bytes, from MemAvailable in /proc/meminfo.
int64_t available_host_memory();

}  // namespace valora
