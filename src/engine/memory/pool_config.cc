#include "engine/memory/pool_config.h"

namespace valora {

memory::PoolConfig pool_config(const MemoryPlan& plan, const EngineOptions& options) {
  memory::PoolConfig config;
  config.blocks = plan.blocks;
  config.swap_blocks = plan.swap_blocks;
  config.state_blocks = plan.state_blocks;
  config.block_bytes = plan.block_bytes;
  config.prefix_caching = options.prefix_caching;
  config.kept_limit = plan.kept_limit;
  return config;
}

}  // namespace valora
