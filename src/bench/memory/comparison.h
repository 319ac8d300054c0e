// FastLibra's comparison (§6) in simulated time: its three applications on the engine's own
// scheduler and pool, and its rivals and ablations as options of the same pool.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/memory_options.h"
#include "base/result.h"
#include "bench/live/live_run.h"
#include "sim/scenarios.h"

namespace valora::bench {

// A machine and a model of 7 billion parameters like those of FastLibra §6.1, by their published
// figures: 256 TFLOPS at half load, 64 GB of memory at 1.2 TB/s, of which the pool is 36 GB, and
// 25 GB/s to the host's memory. Adapters of rank 32 and 64.
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
  memory::SwapperConfig swapper;                   // variants change parts of it
};

struct ComparedVariant {
  std::string name;
  std::string meaning;
  std::function<void(memory::PoolConfig&)> change;
  // The same for an engine; pool_bytes is set.
  std::function<void(MemoryOptions&)> change_options;
};
// whole, benefit, no dependencies, no reward, lru, fixed share, no history
const std::vector<ComparedVariant>& compared_variants();

constexpr double kPeakTtft = 0.5;  // seconds, FastLibra §6.1

// Requests/s up to which the mean TTFT is below kPeakTtft.
struct Peak {
  double rate = 0;
  bool reached = true;  // false: at least this rate
};

struct ComparedRun {
  std::string variant;
  double ttft = 0, ttft_p99 = 0, tpot = 0;          // seconds; means but for the p99
  double queue = 0, adapter_wait = 0, kv_wait = 0;  // mean parts of the TTFT before prefill
  double kv_hits = 0, adapter_hits = 0;             // shares of prompt tokens, and of requests
  double invalid_kv = 0;                            // mean share of the KV in the pool
  std::optional<Peak> peak;
  size_t failed = 0;  // requests; they count nowhere else
};

// One run per variant on the same requests. with_peak: also searches the peak rate. Errors are
// those of sim::simulate().
Result<std::vector<ComparedRun>> compare(const sim::ScenarioConfig& scenario,
                                         const SimulatedMachine& machine, bool with_peak);

constexpr int kSweptRates = 10;

// FastLibra's figure 11: the means over kSweptRates rates from a tenth of the peak of the first
// variant up to it, at which the others may be overloaded. The first variant has its peak as
// `peak`. kInvalidArgument if it is 0.
Result<std::vector<ComparedRun>> compare_up_to_peak(const sim::ScenarioConfig& scenario,
                                                    const SimulatedMachine& machine);

// A mean TTFT at a rate.
struct RatePoint {
  double rate = 0, ttft = 0;  // requests/s, seconds
  bool failed = false;        // some requests had no answer
};
// The rate at which the TTFT reaches kPeakTtft, linear between the points, which ascend in rate and
// are at least one. 0 if it does at the lowest one. Where requests fail, the peak is passed: it is
// at least the rate before.
Peak peak_of(std::span<const RatePoint> points);

// Sums up all rounds of one variant; the name stays empty.
ComparedRun summary_of(std::span<const LiveReport> rounds);

// As in the table; "–" if it was not searched.
std::string text_of(const std::optional<Peak>& peak);
std::string comparison_text(const sim::ScenarioConfig& scenario,
                            const std::vector<ComparedRun>& runs);

}  // namespace valora::bench
