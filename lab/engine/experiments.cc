#include "lab/engine/experiments.h"

#include "lab/memory/comparison.h"
#include "lab/policies/policies.h"
#include "serving/loop/core.h"

namespace valora::bench {
namespace {

Status check(const Experiments& e) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (!is_share(e.policy.merged_share) || !is_share(e.policy.starving_share))
    return invalid("--merged-share and --starving-share must be between 0 and 1", "merged_share");
  if (!(e.policy.merged_gain > 0)) return invalid("--merged-gain must be above 0", "merged_gain");
  if (!(is_share(e.low) && is_share(e.high) && e.low < e.high))
    return invalid("--pool-low must be below --pool-high, and both between 0 and 1", "pool_low");
  if (!(e.period > 0 && e.window > 0 && e.benefit.recency_seconds > 0))
    return invalid("--swap-period, --visit-window and --recency must be above 0", "swap_period");
  if (!(e.copy_bandwidth >= 0))
    return invalid("--swap-bandwidth must not be negative", "swap_bandwidth");
  return {};
}

std::shared_ptr<memory::Valuation> valuation_of(const Experiments& e) {
  if (e.values == "benefit") return std::make_shared<Benefit>(e.benefit);
  if (e.values == "lru") return std::make_shared<Lru>();
  return nullptr;
}

Status fix_share_of(int64_t adapter_bytes, serving::CoreConfig& core) {
  memory::PoolConfig& pool = core.pool;
  const int64_t share = adapter_bytes / pool.block_bytes,
                sequence = memory::blocks_for(core.max_model_len) + pool.state_blocks;
  if (share < 1 || pool.blocks - share < sequence)
    return invalid("--adapter-memory must be at least " + std::to_string(pool.block_bytes) +
                       " bytes, and leave " + std::to_string(sequence * pool.block_bytes) +
                       " of the pool of " + std::to_string(pool.blocks * pool.block_bytes) +
                       " for one sequence",
                   "adapter_memory");
  fix_share(pool, static_cast<int32_t>(share));
  return {};
}

Status change(const Experiments& e, serving::CoreConfig& core) {
  memory::PoolConfig& pool = core.pool;
  pool.swapper = {.high = e.high, .low = e.low, .valuation = valuation_of(e)};
  pool.period = from_seconds(e.period);
  pool.window = from_seconds(e.window);
  pool.dependencies = e.dependencies && pool.swapper.valuation != nullptr;
  pool.history = e.history;
  core.copy_bandwidth = e.copy_bandwidth;
  return e.adapter_bytes ? fix_share_of(*e.adapter_bytes, core) : Status();
}

}  // namespace

scheduler::PolicyOptions policy_options(const SchedulingOptions& options,
                                        const Experiments& experiments) {
  scheduler::PolicyOptions policy = experiments.policy;
  policy.tolerance = from_seconds(options.tolerance);
  policy.max_adapters = options.max_adapters;
  return policy;
}

Result<EngineChanges> changes_of(const SchedulingOptions& options, const Experiments& experiments) {
  VALORA_CHECK(check(experiments));
  EngineChanges changes;
  changes.policy = [options, experiments] {
    return make_compared_policy(options.policy, policy_options(options, experiments)).value();
  };
  changes.core = [experiments](serving::CoreConfig& core) { return change(experiments, core); };
  return changes;
}

}  // namespace valora::bench
