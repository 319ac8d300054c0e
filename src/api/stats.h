// What an engine counts, and who is told of its steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora {

// A snapshot for /metrics.
struct EngineStats {
  int running = 0;
  int waiting = 0;    // in the scheduler's queue
  int preparing = 0;  // media and tokenizing
  double kv_usage = 0;
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // in tokens
  uint64_t media_queries = 0, media_hits = 0;
  uint64_t visual_queries = 0, visual_hits = 0;  // embeddings of the vision tower
  std::vector<std::string> running_adapters, waiting_adapters;
  std::string mode = "unmerged";  // of the last step: unmerged, merged or mixture
  uint64_t mode_switches =
      0;  // changes between base weights and those with an adapter merged, or between adapters
  uint64_t merges = 0;  // of these: with an adapter that had to be merged
  double merge_seconds = 0;
  uint64_t steps = 0;
  double step_seconds = 0;      // total, of engine iterations with work
  double overhead_seconds = 0;  // of that: outside the model's forward pass and sampling
};

// Told after each step, on the engine thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(int tokens, int sequences, double seconds) = 0;
};

}  // namespace valora
