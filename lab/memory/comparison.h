// FastLibra's comparison (§6) in simulated time: its three applications on the engine's own
// scheduler and pool, with its rivals and ablations expressed as options of that pool.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/live/live_run.h"
#include "lab/memory/valuations.h"
#include "lab/sim/scenarios.h"

namespace valora::bench {

// A machine and a 7-billion-parameter model like those of FastLibra §6.1, from published figures:
// 256 TFLOPS at 50 % utilisation, 64 GB of memory at 1.2 TB/s, of which 36 GB are the pool, and 25
// GB/s to host memory. Adapters of rank 32 and 64.
struct SimulatedMachine {
  scheduler::StepCosts step{.step = 0.014,
                            .prefill_token = 1.1e-4,
                            .decode_token = 1e-4,
                            .prefill_context = 4e-7,
                            .decode_context = 4e-7,
                            .segment = 3e-4};
  memory::LinkCost link{2e-5, 25e9, 25e9};
  int32_t pool_blocks = 4500;
  int32_t swap_blocks = 20000;
  int64_t block_bytes = int64_t{8} << 20;
  int32_t small_adapter = 20, large_adapter = 40;  // blocks
  BenefitOptions benefit;                          // of the variants that use it
};

struct ComparedVariant {
  std::string name;
  std::string meaning;
  std::function<void(memory::PoolConfig&, const BenefitOptions&)> change;
};
// Gives adapters a fixed share of the pool, of which pinned ones may take half.
void fix_share(memory::PoolConfig& config, int32_t blocks);
// whole, benefit, no dependencies, no reward, lru, fixed share, no history
const std::vector<ComparedVariant>& compared_variants();

constexpr double kPeakTtft = 0.5;  // seconds, FastLibra §6.1

// The highest rate in requests/s at which the mean TTFT stays below kPeakTtft.
struct Peak {
  double rate = 0;
  bool reached = true;  // false: the peak is at least this rate
};

struct ComparedRun {
  std::string variant;
  double ttft = 0, ttft_p99 = 0, tpot = 0;          // seconds; means, except the p99
  double queue = 0, adapter_wait = 0, kv_wait = 0;  // mean components of TTFT before prefill
  double kv_hits = 0, adapter_hits = 0;             // share of prompt tokens, share of requests
  double invalid_kv = 0;                            // mean share of the KV in the pool
  std::optional<Peak> peak;
  size_t failed = 0;  // requests; excluded from all other figures
};

// Runs each variant on the same requests. with_peak: also searches for the peak rate. Errors are
// those of sim::simulate().
Result<std::vector<ComparedRun>> compare(const sim::ScenarioConfig& scenario,
                                         const SimulatedMachine& machine, bool with_peak);

constexpr int kSweptRates = 10;

// FastLibra's figure 11: means over kSweptRates rates, from a tenth of the first variant's peak up
// to that peak, where the others may be overloaded. The first variant's `peak` is set.
// kInvalidArgument if the peak is 0.
Result<std::vector<ComparedRun>> compare_up_to_peak(const sim::ScenarioConfig& scenario,
                                                    const SimulatedMachine& machine);

// The mean TTFT at one rate.
struct RatePoint {
  double rate = 0, ttft = 0;  // requests/s, seconds
  bool failed = false;        // some requests were not answered
};
// The rate at which TTFT reaches kPeakTtft, interpolated linearly. `points` ascend in rate; at
// least one. 0 if it is reached at the lowest rate already. If requests fail at a rate, the peak is
// below it, and the result is the rate before, as a lower bound.
Peak peak_of(std::span<const RatePoint> points);

// Summarises all rounds of one variant; the name stays empty.
ComparedRun summary_of(std::span<const LiveReport> rounds);

// As shown in the table; "–" if it was not searched for.
std::string text_of(const std::optional<Peak>& peak);
std::string comparison_text(const sim::ScenarioConfig& scenario,
                            const std::vector<ComparedRun>& runs);

}  // namespace valora::bench
