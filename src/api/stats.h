// The counters of an engine, and an observer of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration_counts.h"

namespace valora {

// Copies between two tiers of memory, in one direction.
struct MoveStats {
  uint64_t moves = 0, failed = 0;
  int64_t bytes = 0;
  double seconds = 0;  // of the copies
};

// The pool that adapters and KV cache share (memory/pool.h), in blocks where nothing else is said.
struct MemoryStats {
  int64_t block_bytes = 0;
  int total = 0, free = 0;
  int adapter_blocks = 0;
  int adapter_limit = 0;   // the most that adapters can have
  int history_blocks = 0;  // cached KV that no request uses, blocks still being read included
  int running_blocks = 0;  // KV that requests use
  int invalid_blocks = 0;  // KV whose adapter is not in the pool
  int swap_total = 0, swap_used = 0;
  int adapters = 0;             // adapters in the pool
  uint64_t swapped_tokens = 0;  // prompt tokens whose KV came from the swap space
  uint64_t adapter_queries = 0,
           adapter_hits = 0;       // adapters of requests; in the pool when asked for
  MoveStats loads, reads, writes;  // adapters from files; KV from the swap space, and to it
  DurationCounts load_times;       // of adapters that came into the pool
  uint64_t adapters_left = 0, kv_dropped = 0;  // adapters, and KV blocks without a copy, that left
};

// Seconds of steps that the requests of a tenant took. Requests of one step share its time.
struct TenantService {
  std::string tenant;
  double seconds = 0;
};

// A snapshot. Counters are totals since the start of the engine.
struct EngineStats {
  int running = 0;
  int waiting = 0;      // requests in the scheduler's queue
  int preparing = 0;    // requests whose media and text are being prepared
  double kv_usage = 0;  // share of the pool that requests use, 0 to 1
  MemoryStats memory;
  uint64_t preemptions = 0;
  uint64_t early_aborts = 0;  // sequences refused because they would have missed their target
  // Guessed tokens, those that were right, and how often a request had any (api/speculation.h).
  uint64_t draft_tokens = 0, right_drafts = 0, drafts = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // in tokens
  uint64_t media_queries = 0, media_hits = 0;
  size_t media_bytes = 0, media_entries = 0;     // of the cache of prepared media
  uint64_t visual_queries = 0, visual_hits = 0;  // lookups of visual embeddings
  size_t visual_bytes = 0, visual_entries = 0;   // of their cache
  uint64_t visuals_encoded = 0;                  // images and videos, by the vision tower
  double visual_seconds = 0;                     // time of that
  std::vector<std::string> running_adapters, waiting_adapters;
  std::vector<TenantService> tenants;  // GenerateRequest::tenant of requests so far
  std::string mode = "unmerged";       // of the last step: unmerged, merged or mixture
  // switches between the base weights and merged weights, or between merged adapters
  uint64_t mode_switches = 0;
  uint64_t merges = 0;  // switches that had to merge an adapter
  double merge_seconds = 0;
  // Of ranks that share a model: collectives, the bytes that they moved between ranks, and the time
  // that rank 0 spent in them, waiting included.
  uint64_t collectives = 0, collective_bytes = 0;
  double collective_seconds = 0;
  // How well the time of a step is known in advance: |predicted / taken - 1| over the last steps,
  // and the factor by which this process corrects the costs that it began with.
  double cost_error_median = 0, cost_error_p95 = 0, cost_correction = 1;
  // What a step is expected to cost apart from its tokens, and its tokens by kind: seconds.
  double step_cost = 0, prefill_token_cost = 0, decode_token_cost = 0;
  uint64_t steps = 0;
  double step_seconds = 0;  // total time of steps with work
  uint64_t stalls = 0;      // how often requests stood still (Engine::standstill())
  // part of step_seconds outside the model's forward pass and sampling
  double overhead_seconds = 0;
};

// A step that ran.
struct StepRecord {
  int tokens = 0;
  int sequences = 0;
  double seconds = 0;
  std::string_view mode = "unmerged";     // as in EngineStats
  bool switched = false, merged = false;  // changes of the weights in this step
  double weights_seconds = 0;             // time of that; part of `seconds`
  int prefill_tokens = 0;                 // of `tokens`, those of prompts
  int adapters = 0;                       // distinct ones, beside a merged one
};

// Called after each step, on the engine thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(const StepRecord& step) = 0;
};

}  // namespace valora
