// What no option of a server sets: the constants of the policies, and parts of the pool that are
// exchanged for comparisons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/start/start_engine.h"
#include "lab/memory/valuations.h"
#include "scheduler/policies/policy.h"

namespace valora::bench {

struct Experiments {
  scheduler::PolicyOptions policy;  // tolerance and max_adapters come from the engine's options
  std::string values = "learned";   // what the pool keeps: learned, benefit or lru
  BenefitOptions benefit;
  bool dependencies = true;  // between adapters and KV; none with learned values
  bool history = true;
  std::optional<int64_t> adapter_bytes;  // fixed share of the pool for adapters
  double high = 0.95, low = 0.70;        // SwapperConfig
  double period = 0.1, window = 300;     // seconds, PoolConfig
  double copy_bandwidth = 0;             // bytes/s; 0: no limit
};

scheduler::PolicyOptions policy_options(const SchedulingOptions& options,
                                        const Experiments& experiments);
// The changes of an engine. kInvalidArgument, now or when it starts, names the experiment at fault.
Result<EngineChanges> changes_of(const SchedulingOptions& options, const Experiments& experiments);

}  // namespace valora::bench
