// Options of `valora bench trace` that define the requests and the points of its sweep.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/cli/command.h"
#include "lab/sim/vision_workload.h"
#include "lab/trace/trace_point.h"

namespace valora::cli {

// kRequests: independent requests. kRetrieval, kVideo: lab/sim/vision_workload.h.
enum class TraceApplication : uint8_t { kRequests, kRetrieval, kVideo };
const char* name_of(TraceApplication application);  // "requests", "retrieval", "video"

struct TraceWorkload {
  TraceApplication application = TraceApplication::kRequests;
  sim::RetrievalConfig retrieval;  // `first` applies to kRequests too
  sim::StreamConfig streams;
  std::string trace_file;
  int clients = 0;         // above 0: closed loop
  double ttft_target = 6;  // seconds, S-LoRA §7.1
  bool targets = false;    // give the requests the TTFT target
  // The sweep covers all combinations.
  std::vector<double> rates{2}, skewness{0.5};
  std::vector<int> adapters{8}, cameras{1}, skills{0}, replicas{1};
};

void add_workload_flags(Command command, TraceWorkload& workload);

// The points of the sweep; at least one. kInvalidArgument: mutually exclusive options.
Result<std::vector<bench::TracePoint>> points_of(const TraceWorkload& workload);

// The requests of a point. trace: rows of trace_file, if one is given.
Result<std::vector<sim::Arrival>> arrivals_of(const TraceWorkload& workload,
                                              const bench::TracePoint& point,
                                              const std::vector<sim::TraceRow>& trace);

}  // namespace valora::cli
