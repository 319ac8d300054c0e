// The core's part of the engine's statistics.
#include <algorithm>

#include "serving/loop/core.h"

namespace valora::serving {
namespace {

// Sorted, without duplicates.
template <typename Requests>
std::vector<std::string> adapter_names(const Requests& requests) {
  std::vector<const LoadedAdapter*> adapters;
  for (const auto& request : requests)
    for (const AppliedAdapter& use : static_cast<const Sequence&>(*request).owner->adapters)
      adapters.push_back(use.adapter.get());
  const auto distinct = [](auto& list) {
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  std::sort(adapters.begin(), adapters.end());
  distinct(adapters);
  std::vector<std::string> names;
  for (const LoadedAdapter* adapter : adapters) names.push_back(adapter->name);
  std::sort(names.begin(), names.end());
  distinct(names);  // a replaced adapter may still run along with its successor of the same name
  return names;
}

}  // namespace

void EngineCore::fill_memory(EngineStats& stats) const {
  const memory::PoolStats pool = pool_.stats();
  stats.kv_usage = pool_.usage();
  stats.prefix_queries = pool.queried_tokens;
  stats.prefix_hits = pool.hit_tokens;
  const auto moves = [](const memory::MoveTotals& t) {
    return MoveStats{t.moves, t.failed, t.bytes, t.seconds};
  };
  stats.memory = {.block_bytes = config_.pool.block_bytes,
                  .total = pool.total,
                  .free = pool.free,
                  .adapter_blocks = pool.adapter_blocks,
                  .adapter_limit = pool_.adapter_limit(),
                  .history_blocks = pool.history_blocks,
                  .running_blocks = pool.running_blocks,
                  .invalid_blocks = pool.invalid_blocks,
                  .swap_total = pool.swap_total,
                  .swap_used = pool.swap_used,
                  .adapters = pool.adapters,
                  .swapped_tokens = pool.swapped_tokens,
                  .adapter_queries = pool.adapter_queries,
                  .adapter_hits = pool.adapter_hits,
                  .loads = moves(pool.loads),
                  .reads = moves(pool.reads),
                  .writes = moves(pool.writes),
                  .load_times = pool.load_times,
                  .adapters_left = pool.adapters_left,
                  .kv_dropped = pool.kv_dropped};
}

void EngineCore::fill(EngineStats& stats) {
  const scheduler::SchedulerStats now = scheduler_.stats();
  // With thousands of waiting requests, collecting the names in every step would be slow, and so
  // would sorting the cost errors.
  if (queues_changed_ || now.running != stats.running || now.waiting != stats.waiting ||
      now.preemptions != stats.preemptions) {
    stats.running_adapters = adapter_names(scheduler_.running());
    stats.waiting_adapters = adapter_names(scheduler_.waiting());
    stats.tenants.clear();
    for (const auto& [name, id] : tenants_) stats.tenants.push_back({name, scheduler_.service(id)});
    const scheduler::LiveCosts::Accuracy accuracy = scheduler_.costs().accuracy();
    stats.cost_error_median = accuracy.median;
    stats.cost_error_p95 = accuracy.p95;
    stats.cost_correction = accuracy.correction;
    const scheduler::LiveCosts::Units units = scheduler_.costs().units();
    stats.step_cost = units.step;
    stats.prefill_token_cost = units.prefill_token;
    stats.decode_token_cost = units.decode_token;
    queues_changed_ = false;
  }
  stats.running = now.running;
  stats.waiting = now.waiting;
  stats.preemptions = now.preemptions;
  stats.early_aborts = now.early_aborts;
  stats.drafts = now.drafts;
  stats.draft_tokens = now.draft_tokens;
  stats.right_drafts = now.right_drafts;
  fill_memory(stats);
  stats.mode = scheduler::mode_name(scheduler_.mode());
  runner_.fill(stats);
}

}  // namespace valora::serving
