// Results of running a workload: the figures of VaLoRA §6 and S-LoRA §7.
#pragma once

#include <span>
#include <vector>

#include "lab/live/live_run.h"
#include "lab/sim/simulation.h"

namespace valora::bench {

// One answer, in seconds since the start of the run.
struct ServedAnswer {
  double arrival = 0, first_token = 0, end = 0;
  int tokens = 0;
};

struct Percentiles {
  double mean = 0, p50 = 0, p99 = 0;
};

struct TraceSummary {
  size_t answers = 0, failed = 0;
  double requests_per_second = 0, tokens_per_second = 0;  // of answers, until the last one ends
  // VaLoRA's average token latency: the sum of all answers' times over the sum of their tokens.
  double token_latency = 0;
  Percentiles ttft, tpot;             // seconds; tpot only for answers of at least two tokens
  double attainment = 0;              // share of all requests whose first token met the target
  uint64_t switches = 0, merges = 0;  // of the weights in use
  double weights_seconds = 0;         // spent merging and restoring
  double cost_correction = 1;         // LiveReport::cost_correction; 1 in simulated time
};

// ttft_target: seconds.
TraceSummary summary_of(std::span<const ServedAnswer> answers, size_t failed, double ttft_target);
TraceSummary summary_of(std::span<const sim::Arrival> arrivals, const LiveReport& report,
                        double ttft_target);
// Appends the answers of a simulation, and counts failed requests.
void append(std::span<const sim::Arrival> arrivals, const sim::SimulationReport& report,
            std::vector<ServedAnswer>& answers, size_t& failed);
// The mean of each figure over the rounds; at least one round.
TraceSummary mean_of(std::span<const TraceSummary> rounds);

}  // namespace valora::bench
