// Runs a workload on an engine of its own, or on a server.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "api/load_adapter.h"
#include "api/options.h"
#include "bench/live/server_target.h"
#include "bench/trace/summary.h"
#include "bench/trace/systems.h"
#include "bench/trace/timeline.h"

namespace valora::cli {

struct TraceOutcome {
  bench::TraceSummary summary;
  std::optional<bench::Timeline> timeline;
};

struct LiveTrace {
  EngineOptions engine;
  int picture_size = 224;  // pixels of each side
  double timeline = 0;     // seconds per interval; 0: none
  double ttft_target = 6;  // seconds
};

// adapters: by AdapterId of the arrivals. Each one runs once before the measurement. progress gets
// the number of ended requests. Errors are those of starting the engine and loading.
Result<TraceOutcome> run_live(const LiveTrace& setting, const bench::TraceSystem& system,
                              const std::vector<sim::Arrival>& arrivals,
                              const std::vector<LoadAdapter>& adapters,
                              std::function<void(size_t)> progress);

// The first `adapters` of those that the server lists stand for the AdapterIds. Errors:
// kUnavailable; kInvalidArgument if it has fewer, or does not name its base model.
Result<TraceOutcome> run_on_server(const LiveTrace& setting, const bench::ServerAddress& server,
                                   const std::vector<sim::Arrival>& arrivals, int adapters,
                                   std::function<void(size_t)> progress);

}  // namespace valora::cli
