#include "engine/pool_config.h"

#include "base/clock.h"

namespace valora {
namespace {

memory::MemoryPolicy memory_policy_of(MemoryPolicy policy) {
  switch (policy) {
    case MemoryPolicy::kBenefit: return memory::MemoryPolicy::kBenefit;
    case MemoryPolicy::kLru: return memory::MemoryPolicy::kLru;
    case MemoryPolicy::kLearned: break;
  }
  return memory::MemoryPolicy::kLearned;
}

}  // namespace

memory::PoolConfig pool_config(const MemoryPlan& plan, const EngineOptions& options) {
  const MemoryOptions& memory = options.memory;
  memory::PoolConfig config;
  config.blocks = plan.blocks;
  config.swap_blocks = plan.swap_blocks;
  config.state_blocks = plan.state_blocks;
  config.block_bytes = plan.block_bytes;
  config.prefix_caching = options.prefix_caching;
  config.swapper.policy = memory_policy_of(memory.policy);
  config.swapper.adapter_reward = memory.adapter_reward;
  config.swapper.high = memory.high;
  config.swapper.low = memory.low;
  config.swapper.recency_seconds = memory.recency;
  config.period = from_seconds(memory.period);
  config.window = from_seconds(memory.window);
  config.dependencies = memory.dependencies;
  config.history = memory.history;
  config.adapter_blocks = plan.adapter_blocks;
  config.kept_limit = plan.kept_limit;
  return config;
}

}  // namespace valora
