// The pool's counters, for metrics. Totals count from the start.
#pragma once

#include <cstdint>

#include "base/duration_counts.h"

namespace valora::memory {

struct MoveTotals {
  uint64_t moves = 0;
  uint64_t failed = 0;
  int64_t bytes = 0;
  double seconds = 0;
};

struct PoolStats {
  // Current values, in blocks.
  int32_t total = 0;
  int32_t free = 0;
  int32_t adapter_blocks = 0;
  int32_t history_blocks = 0;  // cached KV that no request uses, including blocks still being read
  int32_t running_blocks = 0;  // KV in use by requests
  int32_t invalid_blocks = 0;  // KV in the pool whose adapter is absent
  int32_t swap_total = 0;
  int32_t swap_used = 0;
  int32_t adapters = 0;  // in the pool

  // Prompt tokens of admitted requests, and how many of them were found in the pool.
  uint64_t queried_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t swapped_tokens = 0;  // requested from the swap space
  // Adapters requested, and how many were in the pool at that time.
  uint64_t adapter_queries = 0;
  uint64_t adapter_hits = 0;

  MoveTotals loads;            // adapters, file to pool
  MoveTotals reads;            // KV, swap space to pool
  MoveTotals writes;           // KV, pool to swap space
  DurationCounts load_times;   // of adapters loaded into the pool
  uint64_t adapters_left = 0;  // evicted from the pool
  uint64_t kv_dropped = 0;     // KV blocks evicted without a copy
};

}  // namespace valora::memory
