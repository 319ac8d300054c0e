// Chooses the size of the memory pool and the maximum sequence length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/machine/control_groups.h"
#include "base/result.h"
#include "models/model.h"
#include "ops/attention/attention.h"

namespace valora {

struct MemoryPlan {
  int64_t block_bytes = 0;     // size of a pool block
  int64_t kv_block_bytes = 0;  // used by KV
  int32_t blocks = 0;
  int32_t state_blocks = 0;  // for a sequence's state in addition to its KV
  int32_t swap_blocks = 0;
  int32_t kept_limit = 0;           // blocks available to pinned adapters
  int64_t adapter_cache_bytes = 0;  // pinned host memory for packed adapters; 0 on CPUs
  int max_model_len = 0;
  std::vector<std::string> notes;
};

// The size of a pool block, which can also hold a part of a state, and the bytes of it that KV
// uses, over all ranks. `spec` gives the widest input of a linear that adapters can target.
struct BlockSizes {
  int64_t pool = 0;
  int64_t kv = 0;
  int32_t state_blocks = 0;  // blocks per sequence state
};
BlockSizes block_sizes(const models::ModelSpec& spec, int max_lora_rank, at::ScalarType dtype,
                       ops::KvFormat kv_format, at::Device device, int ranks = 1);
// The KV cache of one of `ranks` ranks.
ops::KvShape kv_shape(const models::ModelSpec& spec, int ranks, at::ScalarType dtype,
                      ops::KvFormat kv_format);
// kUnprocessable if the device or the selected kernels do not support the format.
Status check_kv_format(const EngineOptions& options, at::ScalarType dtype, at::Device device);

// available_bytes: free memory of the device. kept_bytes: the part of it that steps need
// (engine/memory/gpu_memory.h). Without --pool-memory, the pool takes at most a quarter of the
// remainder, or an eighth of all free memory if that is more. kInvalidArgument, with the number of
// bytes, if an option does not fit. plan.notes: adjustments to report to the user.
Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               const BlockSizes& sizes, int64_t available_bytes,
                               int64_t kept_bytes = 0);
// The share of plan_memory()'s memory that media caches (options.media_cache_bytes,
// visual_cache_bytes) take; 0 for a model without images. on_host: the model runs on the CPU;
// otherwise only embeddings are on its device. kInvalidArgument if they do not fit.
Result<int64_t> plan_caches(const EngineOptions& options, const models::ModelSpec& spec,
                            bool on_host, int64_t available_bytes);
// kInvalidArgument if the shadow of merged weights (engine/adapters/mode_switcher.h) does not fit;
// the message gives the missing bytes. integers: the base weights are integers, so merging in place
// is no alternative.
Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes,
                    bool integers);
// Bytes of host memory for packed adapters on a server with a GPU. kInvalidArgument if they and the
// swap space do not fit into `free_bytes` of host memory.
Result<int64_t> plan_adapter_cache(const MemoryOptions& options, int64_t free_bytes);
// The largest adapter file to accept: a third of the free memory, because it is read, copied and
// packed.
size_t largest_adapter();
// Free host memory in bytes: MemAvailable in /proc/meminfo, but at most what the memory limits of
// the process's control groups leave. limit: the one that decides, if one does. root: as of
// memory_limit().
struct HostMemory {
  int64_t available = 0;
  std::optional<MemoryLimit> limit;
};
HostMemory host_memory(const std::string& root = {});
int64_t available_host_memory();
// The options with caches of media that, where they have their default size, take at most an eighth
// of the free memory each, so that defaults fit into a small container.
EngineOptions with_fitting_caches(EngineOptions options, int64_t available_bytes);

}  // namespace valora
