#include "bench/trace/simulated_trace.h"

#include <algorithm>

namespace valora::bench {

Result<TraceSummary> run_simulated(const TraceSystem& system, const SimulatedServer& server,
                                   std::span<const sim::Arrival> arrivals, double ttft_target) {
  const scheduler::StepCosts costs = costs_of(system, server.costs);
  sim::SimulationConfig config;
  config.scheduler = {.max_num_seqs = server.max_num_seqs,
                      .max_num_batched_tokens = server.max_num_batched_tokens,
                      .max_waiting = 1 << 20,
                      .costs = costs,
                      .merge_in_place = system.in_place,
                      .early_abort = server.early_abort};
  config.policy = name_of(system.policy);
  config.policy_options = {.tolerance = from_seconds(server.tolerance),
                           .max_adapters = system.max_adapters};
  config.pool.blocks = server.pool_blocks;
  scheduler::AdapterId last = scheduler::kBaseModel;
  for (const sim::Arrival& arrival : arrivals) last = std::max(last, arrival.adapter);
  config.adapter_ranks.assign(static_cast<size_t>(last) + 1, server.rank);
  VALORA_TRY(report, sim::simulate(config, {arrivals.begin(), arrivals.end()}, costs));
  return summary_of(arrivals, report, ttft_target);
}

}  // namespace valora::bench
