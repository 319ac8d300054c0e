// Open-loop workloads over many adapters: requests that share no prefix and come at times that do
// not depend on the answers. Synthetic ones as in S-LoRA §7.2 and VaLoRA §6.3, and the times and
// lengths of a recorded trace. The same seed gives the same workload everywhere (random.h), whose
// prompts are of random ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/azure_trace.h"
#include "sim/simulation.h"

namespace valora::sim {

// kPoisson: exponential inter-arrival times. kGamma: gamma-distributed ones with a coefficient of
// variation `cv`; above 1 the requests come in bursts. Unlike S-LoRA, which has a process for each
// adapter, there is one for all requests. kTrace: those of a trace.
enum class ArrivalProcess : uint8_t { kPoisson, kGamma, kTrace };
// Each request draws its adapter. kUniform: all equally likely. kPowerLaw: adapter i with a weight
// of (i+1)^-alpha (S-LoRA §7.2). kSkewed: adapter 0 with a probability of `skewness`, the others
// share the rest equally (VaLoRA §6.3.3); a single adapter has all.
enum class AdapterShares : uint8_t { kUniform, kPowerLaw, kSkewed };

struct WorkloadConfig {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  double rate = 1;  // mean requests per second; 0 with kTrace: as recorded
  double cv = 1;    // of kGamma; 0.01 to 100
  AdapterShares shares = AdapterShares::kUniform;
  double alpha = 1;       // of kPowerLaw; 0 is uniform
  double skewness = 0.5;  // of kSkewed; 0 to 1
  // A load that shifts: skewness in equal parts of the time, instead of the one above. The most
  // popular adapter of part p is p % adapters.
  std::vector<double> phases;
  int adapters = 20;  // 0: all requests are for the base model
  double seconds = 300;
  // Lengths are uniform between these (S-LoRA §7.2). kTrace ignores them; its rows have lengths.
  int prompt_min = 8, prompt_max = 512;
  int answer_min = 8, answer_max = 512;
  // Longest sequence, at least 2. A longer one is cut: first the end of its prompt, which keeps at
  // least max_tokens / 2 tokens, then its answer.
  int max_tokens = 4096;
  uint32_t seed = 1;
};

inline constexpr int kMaxRequests = 1'000'000;  // of one workload

// In order of time, from 0 to `seconds`. Times, adapters and lengths are drawn apart: a change of
// one of these settings leaves the others as they were.
//
// kTrace takes the rows in turn, and begins again at the trace's end, one mean gap after its last
// row. With a rate, it takes rate * seconds rows (rounded) and scales their times, so that they
// fill `seconds` exactly: bursts stay. `trace` is as read_azure_trace() gives it, and is ignored by
// the other processes.
//
// kInvalidArgument, with the name of the field: a value out of its range; more than kMaxRequests
// expected; a trace without two different times.
Result<std::vector<Arrival>> make_workload(const WorkloadConfig& config,
                                           std::span<const TraceRow> trace = {});

// "poisson", "gamma", "trace".
const char* name_of(ArrivalProcess process);
// "uniform", "power-law", "skewed".
const char* name_of(AdapterShares shares);
// The inverse. kInvalidArgument: another name; the message lists the known ones.
Result<ArrivalProcess> parse_arrival_process(const std::string& name);
Result<AdapterShares> parse_adapter_shares(const std::string& name);

}  // namespace valora::sim
