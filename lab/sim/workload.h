// Open-loop workloads over many adapters: requests share no prefix and arrive at times that do not
// depend on answers. Synthetic as in S-LoRA §7.2 and VaLoRA §6.3, or with the times and lengths of
// a recorded trace. The same seed gives the same workload everywhere (random.h). Prompts consist of
// random ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/sim/azure_trace.h"
#include "lab/sim/simulation.h"

namespace valora::sim {

// kPoisson: exponential inter-arrival times. kGamma: gamma-distributed ones with coefficient of
// variation `cv`; above 1, requests come in bursts. Unlike S-LoRA, which has a process per adapter,
// there is a single process. kTrace: the times of a trace.
enum class ArrivalProcess : uint8_t { kPoisson, kGamma, kTrace };
// How each request draws its adapter. kUniform: all equally likely. kPowerLaw: adapter i with
// weight (i+1)^-alpha (S-LoRA §7.2). kSkewed: adapter 0 with probability `skewness`, the others
// equally (VaLoRA §6.3.3); a single adapter gets all.
enum class AdapterShares : uint8_t { kUniform, kPowerLaw, kSkewed };

struct WorkloadConfig {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double rate = 1;  // mean requests per second; 0 with kTrace: as recorded
  double cv = 1;    // for kGamma; 0.01 to 100
  AdapterShares shares = AdapterShares::kUniform;
  double alpha = 1;       // for kPowerLaw; 0 is uniform
  double skewness = 0.5;  // for kSkewed; 0 to 1
  // For a shifting load: the skewness in equal parts of the time, replacing the one above. The most
  // popular adapter in part p is p % adapters.
  std::vector<double> phases;
  int adapters = 20;  // 0: all requests are for the base model
  double seconds = 300;
  // Lengths are uniform between these (S-LoRA §7.2). Ignored by kTrace, whose rows have lengths.
  int prompt_min = 8, prompt_max = 512;
  int answer_min = 8, answer_max = 512;
  // Longest sequence, at least 2. A longer one is cut: first the end of its prompt, down to
  // max_tokens / 2 tokens, then its answer.
  int max_tokens = 4096;
  uint32_t seed = 1;
};

inline constexpr int kMaxRequests = 1'000'000;  // per workload

// Arrivals in order of time, from 0 to `seconds`. Times, adapters and lengths are drawn
// independently: changing one of these settings leaves the others unchanged.
//
// kTrace uses the rows in order and starts over at the trace's end, one mean gap after the last
// row. With a rate, it uses rate * seconds rows (rounded) and scales their times to fill `seconds`
// exactly, which preserves bursts. `trace` is from read_azure_trace(); other processes ignore it.
//
// kInvalidArgument, naming the field: a value out of range, more than kMaxRequests expected
// requests, or a trace with fewer than two distinct times.
Result<std::vector<Arrival>> make_workload(const WorkloadConfig& config,
                                           std::span<const TraceRow> trace = {});

// "poisson", "gamma", "trace".
const char* name_of(ArrivalProcess process);
// "uniform", "power-law", "skewed".
const char* name_of(AdapterShares shares);
// Parses a name. kInvalidArgument if unknown; the message lists the known ones.
Result<ArrivalProcess> parse_arrival_process(const std::string& name);
Result<AdapterShares> parse_adapter_shares(const std::string& name);

}  // namespace valora::sim
