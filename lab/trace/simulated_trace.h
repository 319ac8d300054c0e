// Runs a workload on a system in simulated time.
#pragma once

#include <span>

#include "lab/trace/summary.h"
#include "lab/trace/systems.h"
#include "lab/trace/timeline.h"

namespace valora::bench {

struct SimulatedServer {
  scheduler::StepCosts costs;
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  double max_decode_gap = 0, max_media_gap = 0;  // seconds
  double tolerance = 0.2;
  bool early_abort = false;
  // In blocks of 16 tokens of KV; by default enough that memory never runs short.
  int32_t pool_blocks = 1 << 17;
  int rank = 16;  // of every adapter
};

// Distributes the requests over `replicas` servers in turn, each together with the requests that
// follow it or have its pictures. timeline, if given, receives the first server's steps. Errors: as
// sim::simulate().
Result<TraceSummary> run_simulated(const TraceSystem& system, const SimulatedServer& server,
                                   std::span<const sim::Arrival> arrivals, double ttft_target,
                                   int replicas = 1, Timeline* timeline = nullptr);

}  // namespace valora::bench
