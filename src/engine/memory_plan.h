// Chooses the size of the memory pool and the maximum sequence length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "models/model.h"
#include "ops/attention.h"

namespace valora {

struct MemoryPlan {
  int64_t block_bytes = 0;     // of the pool
  int64_t kv_block_bytes = 0;  // used by KV
  int32_t blocks = 0;
  int32_t state_blocks = 0;  // of a sequence's state besides its KV
  int32_t swap_blocks = 0;
  std::optional<int32_t> adapter_blocks;  // a fixed share for adapters
  int32_t kept_limit = 0;                 // blocks that pinned adapters can have
  int64_t adapter_cache_bytes = 0;        // pinned host memory for packed adapters; 0 on CPUs
  int max_model_len = 0;
  std::vector<std::string> notes;
};

// The size of a pool block, which holds a part of a state, too, and the bytes of it that KV uses,
// on all ranks together. `spec` names the widest input of a linear that can have adapters.
struct BlockSizes {
  int64_t pool = 0;
  int64_t kv = 0;
  int32_t state_blocks = 0;  // how many a sequence's state takes
};
BlockSizes block_sizes(const models::ModelSpec& spec, int max_lora_rank, at::ScalarType dtype,
                       ops::KvFormat kv_format, at::Device device, int ranks = 1);
// The KV cache of one of so many ranks.
ops::KvShape kv_shape(const models::ModelSpec& spec, int ranks, at::ScalarType dtype,
                      ops::KvFormat kv_format);
// kUnprocessable if the device or the kernels in use have no such cache.
Status check_kv_format(const EngineOptions& options, at::ScalarType dtype, at::Device device);

// available_bytes: free memory of the device. kept_bytes: of it, what steps need
// (engine/gpu_memory.h). Without --pool-memory the pool takes at most a quarter of the rest, or an
// eighth of all. kInvalidArgument if an option does not fit; the message has the number of bytes.
// notes: adjustments to report to the user.
Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               const BlockSizes& sizes, int64_t available_bytes,
                               int64_t kept_bytes = 0);
// The GPU kernels know no attention windows: kInvalidArgument if a layer's is shorter than the
// longest sequence. The message has the longest possible one.
Status check_gpu_windows(const models::ModelSpec& spec, int max_model_len);
// What the caches of media (options.media_cache_bytes, visual_cache_bytes) take of the memory that
// plan_memory gets; 0 for a model without images. `on_host`: the model runs on the CPU; otherwise,
// only embeddings are on its device. kInvalidArgument if they do not fit.
Result<int64_t> plan_caches(const EngineOptions& options, const models::ModelSpec& spec,
                            bool on_host, int64_t available_bytes);
// kInvalidArgument if the shadow of merged weights (engine/mode_switcher.h) does not fit; the
// message has the number of missing bytes. integers: the base model's weights are, so that merging
// in place is no remedy.
Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes,
                    bool integers);
// The bytes of packed adapters that a server with a GPU keeps in host memory. kInvalidArgument if
// they and the swap space do not fit into `free_bytes` of the host.
Result<int64_t> plan_adapter_cache(const MemoryOptions& options, int64_t free_bytes);
// The largest adapter file that is read: a third of the free memory, because it is read, copied
// and packed.
size_t largest_adapter();
// Free memory of the host in bytes, from MemAvailable in /proc/meminfo.
int64_t available_host_memory();

}  // namespace valora
