#include "engine/memory_plan.h"

#include <algorithm>
#include <fstream>

#include "memory/block_arena.h"

namespace valora {
namespace {

// Saturates: options and configurations are not checked for overflow.
int64_t product(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

int64_t blocks_for(int64_t tokens) {
  return (tokens + memory::kBlockTokens - 1) / memory::kBlockTokens;
}

}  // namespace

int64_t available_host_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return int64_t{4} << 30;
}

Result<MemoryPlan> plan_memory(const EngineOptions& options, const models::ModelSpec& spec,
                               int64_t block_bytes, int64_t available_bytes) {
  MemoryPlan plan;
  plan.block_bytes = block_bytes;
  if (options.max_model_len && *options.max_model_len > spec.max_positions)
    return invalid("--max-model-len " + std::to_string(*options.max_model_len) +
                       " exceeds the model's limit of " + std::to_string(spec.max_positions),
                   "max_model_len");
  if (options.max_model_len && *options.max_model_len < 1)
    return invalid("--max-model-len must be at least 1", "max_model_len");
  const int64_t wanted_len = options.max_model_len.value_or(static_cast<int>(spec.max_positions));
  // Default: every sequence at full length, at most a quarter of the free memory.
  const int64_t everything =
      product(product(blocks_for(wanted_len), options.max_num_seqs), block_bytes);
  const int64_t budget =
      options.kv_cache_memory.value_or(std::min(everything, available_bytes / 4));
  if (budget > available_bytes)
    return invalid("--kv-cache-memory asks for " + std::to_string(budget) + " bytes, but " +
                       std::to_string(available_bytes) + " are free",
                   "kv_cache_memory");
  const int64_t blocks = std::min<int64_t>(budget / block_bytes, INT32_MAX);
  if (blocks < 1)
    return invalid("the KV cache needs at least one block of " + std::to_string(block_bytes) +
                       " bytes, but gets " + std::to_string(budget) + "; raise --kv-cache-memory",
                   "kv_cache_memory");
  if (blocks < blocks_for(wanted_len)) {
    const int64_t needed = product(blocks_for(wanted_len), block_bytes);
    if (options.max_model_len)
      return invalid("the KV cache of " + std::to_string(budget) +
                         " bytes is too small for one sequence of --max-model-len " +
                         std::to_string(wanted_len) + "; set --kv-cache-memory to at least " +
                         std::to_string(needed),
                     "kv_cache_memory");
    plan.notes.push_back("--max-model-len was lowered from " + std::to_string(wanted_len) + " to " +
                         std::to_string(blocks * memory::kBlockTokens) +
                         ", which fits into the KV cache; to keep it, set --kv-cache-memory to " +
                         std::to_string(needed));
  }
  plan.kv_blocks = static_cast<int32_t>(blocks);
  plan.max_model_len =
      static_cast<int>(std::min<int64_t>(wanted_len, blocks * memory::kBlockTokens));
  return plan;
}

Status check_shadow(const std::string& policy, int64_t shadow_bytes, int64_t available_bytes) {
  if (shadow_bytes <= available_bytes) return {};
  return invalid("--scheduling-policy " + policy + " with --merge shadow needs " +
                     std::to_string(shadow_bytes) + " bytes for merged weights, " +
                     std::to_string(shadow_bytes - available_bytes) +
                     " more than are free; use --merge inplace, which needs none",
                 "merge");
}

}  // namespace valora
