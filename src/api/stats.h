// The counters of an engine, and an observer of its steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora {

// A snapshot. Counters are totals since the start of the engine.
struct EngineStats {
  int running = 0;
  int waiting = 0;      // requests in the scheduler's queue
  int preparing = 0;    // requests whose media and text are being prepared
  double kv_usage = 0;  // used share of the KV cache, 0 to 1
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // in tokens
  uint64_t media_queries = 0, media_hits = 0;
  uint64_t visual_queries = 0, visual_hits = 0;  // lookups of visual embeddings
  std::vector<std::string> running_adapters, waiting_adapters;
  std::string mode = "unmerged";  // of the last step: unmerged, merged or mixture
  // switches between the base weights and merged weights, or between merged adapters
  uint64_t mode_switches = 0;
  uint64_t merges = 0;  // switches that had to merge an adapter
  double merge_seconds = 0;
  uint64_t steps = 0;
  double step_seconds = 0;  // total time of steps with work
  // part of step_seconds outside the model's forward pass and sampling
  double overhead_seconds = 0;
};

// Called after each step, on the engine thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(int tokens, int sequences, double seconds) = 0;
};

}  // namespace valora
