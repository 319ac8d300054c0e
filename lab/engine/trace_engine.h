// Runs workloads on an engine, or on a server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/load_adapter.h"
#include "api/options.h"
#include "lab/engine/experiments.h"
#include "lab/live/live_run.h"
#include "lab/live/server_target.h"
#include "lab/trace/summary.h"
#include "lab/trace/systems.h"
#include "lab/trace/timeline.h"
#include "ops/lora/low_rank_products.h"
#include "scheduler/costs/cost_file.h"
#include "scheduler/policies/policies_in_turn.h"
#include "serving/local_engine.h"
#include "tuning/step_collector.h"

namespace valora::bench {

struct TraceOutcome {
  TraceSummary summary;
  std::optional<Timeline> timeline;
};

struct LiveTrace {
  EngineOptions engine;
  Experiments experiments;
  int picture_size = 224;   // pixels of each side
  double timeline = 0;      // seconds per interval; 0: none
  bool fits_costs = false;  // keeps the steps for fitted_costs()
  double ttft_target = 6;   // seconds
};

// An engine on which systems run in turn, each with its own policy and operators. No run inherits
// another one's merged weights. The pool, however, starts full of KV that no request can match, as
// in a server that has been running for a while.
class TraceEngine {
 public:
  // adapters: indexed by the arrivals' AdapterId; each is loaded and used once. Errors are those of
  // starting the engine and loading.
  static Result<std::unique_ptr<TraceEngine>> start(const LiveTrace& setting,
                                                    std::span<const TraceSystem* const> systems,
                                                    const std::vector<LoadAdapter>& adapters);
  ~TraceEngine() { ops::set_low_rank_products(nullptr); }

  // system: index. A run never reuses KV of earlier ones. progress receives the number of requests
  // that have ended.
  TraceOutcome run(size_t system, const std::vector<sim::Arrival>& arrivals,
                   std::function<void(size_t)> progress);
  // Fits step costs to all runs so far; requires LiveTrace::fits_costs. Errors are those of
  // scheduler::fit_costs().
  Result<scheduler::CostFile> fitted_costs() const;

 private:
  TraceEngine(const LiveTrace& setting, std::span<const TraceSystem* const> systems)
      : setting_(setting), systems_(systems.begin(), systems.end()) {}
  LiveOptions live_options(const TraceSystem& system, std::function<void(size_t)> progress) const;

  const LiveTrace setting_;
  const std::vector<const TraceSystem*> systems_;
  std::vector<std::string> adapters_;  // names
  scheduler::PoliciesInTurn* policies_ = nullptr;
  tuning::StepCollector steps_;
  // By system; null: our own operators.
  std::vector<std::unique_ptr<ops::LowRankProducts>> products_;
  std::unique_ptr<serving::LocalEngine> engine_;  // calls steps_
  size_t runs_ = 0;
};

// The first `adapters` that the server lists are used for the AdapterIds. Errors: kUnavailable;
// kInvalidArgument if the server has fewer, or does not name its base model.
Result<TraceOutcome> run_on_server(const LiveTrace& setting, const ServerAddress& server,
                                   const std::vector<sim::Arrival>& arrivals, int adapters,
                                   std::function<void(size_t)> progress);

}  // namespace valora::bench
