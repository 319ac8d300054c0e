// The engine's counters, and an observer of its steps.
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
  double seconds = 0;  // spent copying
};

// The pool shared by adapters and KV cache (memory/pool.h), in blocks unless noted otherwise.
struct MemoryStats {
  int64_t block_bytes = 0;
  int total = 0, free = 0;
  int adapter_blocks = 0;
  int adapter_limit = 0;   // most that adapters may hold
  int history_blocks = 0;  // cached KV that no request uses, including blocks still being read
  int running_blocks = 0;  // KV in use by requests
  int invalid_blocks = 0;  // KV whose adapter is not in the pool
  int swap_total = 0, swap_used = 0;
  int adapters = 0;                        // adapters in the pool
  int64_t head_bytes = 0, head_limit = 0;  // task heads, outside the pool
  uint64_t swapped_tokens = 0;             // prompt tokens whose KV came from the swap space
  uint64_t adapter_queries = 0,
           adapter_hits = 0;                   // adapters requested; of these, found in the pool
  MoveStats loads, reads, writes;              // adapters from files; KV from and to the swap space
  DurationCounts load_times;                   // of adapters into the pool
  uint64_t adapters_left = 0, kv_dropped = 0;  // evicted: adapters, and KV blocks without a copy
};

// Step time charged to a tenant's requests, in seconds. Requests of one step share its time.
struct TenantService {
  std::string tenant;
  double seconds = 0;
};

// A snapshot. Counters are totals since the engine started.
struct EngineStats {
  int running = 0;
  int waiting = 0;      // requests in the scheduler's queue
  int preparing = 0;    // requests whose media and text are being prepared
  double kv_usage = 0;  // share of the pool that requests use, 0 to 1
  MemoryStats memory;
  uint64_t preemptions = 0;
  uint64_t early_aborts = 0;  // sequences rejected because they would have missed their target
  // Speculative decoding (api/options.h): draft tokens, accepted ones, and how often a request
  // had any.
  uint64_t draft_tokens = 0, right_drafts = 0, drafts = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // in tokens
  uint64_t media_queries = 0, media_hits = 0;
  size_t media_bytes = 0, media_entries = 0;     // of the cache of prepared media
  uint64_t visual_queries = 0, visual_hits = 0;  // lookups of visual embeddings
  size_t visual_bytes = 0, visual_entries = 0;   // of the cache of visual embeddings
  uint64_t visuals_encoded = 0;                  // images, videos and parts of them (VisualInput)
  double visual_seconds = 0;                     // spent encoding them
  std::vector<std::string> running_adapters, waiting_adapters;
  std::vector<TenantService> tenants;  // of all requests so far, by GenerateRequest::tenant
  std::string mode = "unmerged";       // of the last step: unmerged, merged or mixture
  // switches between the base weights and merged weights, or between merged adapters
  uint64_t mode_switches = 0;
  uint64_t merges = 0;  // switches that had to merge an adapter
  double merge_seconds = 0;
  // Ranks that share a model: number of collectives, bytes they moved between ranks, and time rank
  // 0 spent in them, including waits.
  uint64_t collectives = 0, collective_bytes = 0;
  double collective_seconds = 0;
  // Accuracy of the predicted step times: |predicted / measured - 1| over recent steps, and the
  // factor by which this process corrects its initial costs.
  double cost_error_median = 0, cost_error_p95 = 0, cost_correction = 1;
  // Predicted costs in seconds: per step, per prompt token and per decoded token.
  double step_cost = 0, prefill_token_cost = 0, decode_token_cost = 0;
  uint64_t steps = 0;
  double step_seconds = 0;  // total time of steps with work
  // On a GPU: kinds of steps that are captured now, and steps that were replayed.
  uint64_t captured_steps = 0, replayed_steps = 0;
  uint64_t stalls = 0;  // how often requests stalled (Engine::standstill())
  // part of step_seconds outside the model's forward pass and sampling
  double overhead_seconds = 0;
};

// An executed step.
struct StepRecord {
  int tokens = 0;
  int sequences = 0;
  double seconds = 0;
  std::string_view mode = "unmerged";     // as in EngineStats
  bool switched = false, merged = false;  // weight changes in this step
  double weights_seconds = 0;             // time for them; part of `seconds`
  int prefill_tokens = 0;                 // prompt tokens among `tokens`
  int adapters = 0;                       // distinct ones, not counting a merged one
};

// Called after each step, on the engine thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(const StepRecord& step) = 0;
};

}  // namespace valora
