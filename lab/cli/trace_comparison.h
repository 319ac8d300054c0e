// Compares the systems of `valora bench trace` at all points of a workload's sweep.
#pragma once

#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "lab/cli/trace_workload.h"
#include "lab/engine/experiments.h"
#include "lab/live/server_target.h"
#include "lab/trace/trace_report.h"

namespace valora::cli {

// Runs on an engine, in simulated time, or on servers.
struct TraceComparison {
  EngineOptions engine;
  bench::Experiments experiments;  // on an engine
  TraceWorkload workload;
  std::string lora_dir;               // adapters of the engine
  std::vector<std::string> policies;  // names from bench::trace_systems(); empty: the usual ones
  std::vector<bench::ServerAddress> servers;  // instead of an engine
  bool simulated = false;
  std::string costs;       // of simulated time: a file, a100, or one of bench::simulated_models()
  std::string fit_costs;   // file to write
  int picture_size = 224;  // pixels
  int rank = 16;           // of adapters in simulated time
  int rounds = 1;
  double timeline = 0;  // seconds per interval; 0: none
};

// One row per point and system. Errors name the wrong option, or what could not be started.
Result<std::vector<bench::ComparedTrace>> run_comparison(const TraceComparison& comparison);

}  // namespace valora::cli
