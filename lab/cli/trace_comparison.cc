#include "lab/cli/trace_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "cli/options/adapter_folders.h"
#include "lab/cli/runs_progress.h"
#include "lab/engine/trace_engine.h"
#include "lab/trace/gpu_model.h"
#include "lab/trace/simulated_trace.h"
#include "scheduler/costs/cost_file.h"

namespace valora::cli {
namespace {

using bench::TraceSummary;
using bench::TraceSystem;

std::vector<const TraceSystem*> chosen_systems(const TraceComparison& comparison) {
  std::vector<const TraceSystem*> chosen;
  for (const TraceSystem& system : bench::trace_systems()) {
    const bool named =
        std::ranges::find(comparison.policies, system.name) != comparison.policies.end();
    const bool usual =
        !system.asked_only && (comparison.simulated || system.operators == bench::Operators::kOurs);
    if (comparison.policies.empty() ? usual : named) chosen.push_back(&system);
  }
  return chosen;
}

// A chosen system that uses its own operators, or null.
const TraceSystem* with_other_operators(const TraceComparison& comparison) {
  for (const TraceSystem* system : chosen_systems(comparison))
    if (system->operators != bench::Operators::kOurs) return system;
  return nullptr;
}

// One side of a comparison: a system on this engine, or a server.
struct Rival {
  std::string name;
  const TraceSystem* system = nullptr;
  const bench::ServerAddress* server = nullptr;
};

std::vector<Rival> rivals_of(const TraceComparison& comparison) {
  std::vector<Rival> rivals;
  for (const bench::ServerAddress& server : comparison.servers)
    rivals.push_back({server.name, nullptr, &server});
  if (rivals.empty())
    for (const TraceSystem* system : chosen_systems(comparison))
      rivals.push_back({system->name, system, nullptr});
  return rivals;
}

Status check_servers(const TraceComparison& comparison) {
  if (comparison.simulated) return invalid("--url and --simulate exclude each other", "url");
  if (!comparison.policies.empty())
    return invalid("--policies: a running server has its own policy", "policies");
  if (comparison.timeline > 0)
    return invalid("--timeline: a server does not report its steps", "timeline");
  return {};
}

// A dtype of `auto` depends on the model and is checked once the engine has started.
Status check_operators(const TraceComparison& comparison) {
  const TraceSystem* other = with_other_operators(comparison);
  if (!other) return {};
  if (comparison.engine.device != DeviceKind::kCpu ||
      comparison.engine.kernels != KernelBackend::kNative)
    return invalid(
        "--policies: the operators of " + other->name + " need --device cpu and --kernels native",
        "policies");
  if (!comparison.fit_costs.empty())
    return invalid("--fit-costs: the steps of " + other->name + " have other costs", "fit_costs");
  return {};
}

Status check(const TraceComparison& comparison) {
  const auto& replicas = comparison.workload.replicas;
  if (!comparison.servers.empty()) VALORA_CHECK(check_servers(comparison));
  if (comparison.simulated && !comparison.fit_costs.empty())
    return invalid("--fit-costs needs an engine", "fit_costs");
  if (comparison.simulated) return {};
  if (comparison.workload.streams.activated)
    return invalid("--activated needs --simulate: on an engine the adapters say where they act",
                   "activated");
  if (!comparison.fit_costs.empty() && !comparison.servers.empty())
    return invalid("--fit-costs: a server does not report its steps", "fit_costs");
  if (replicas.size() != 1 || replicas[0] != 1)
    return invalid("--replicas needs --simulate", "replicas");
  if (!comparison.servers.empty()) return {};
  if (comparison.engine.model_path.empty())
    return invalid("--model is needed, or --url URL, or --simulate COSTS", "model");
  if (std::ranges::max(comparison.workload.adapters) > 0 && comparison.lora_dir.empty())
    return invalid("--lora-dir is needed: a folder of adapters of the model", "lora_dir");
  return check_operators(comparison);
}

// Fills in the server's costs and capacities.
Status simulate_server(const TraceComparison& comparison, bench::SimulatedServer& server) {
  const std::string& costs = comparison.costs;
  const int ranks = comparison.engine.tensor_parallel_size;
  const std::vector<std::string> models = bench::simulated_models();
  if (std::ranges::find(models, costs) != models.end()) {
    VALORA_TRY(gpus, bench::simulated_gpus(costs, ranks));
    server.costs = gpus.costs;
    server.pool_blocks = gpus.pool_blocks;
    return {};
  }
  if (ranks != 1)
    return invalid(fmt::format("--tensor-parallel-size: --simulate {} has the costs of its own "
                               "number of ranks; {} have any",
                               costs, fmt::join(models, " and ")),
                   "tensor_parallel_size");
  if (costs == "a100") {
    server.costs = bench::a100_costs();
    return {};
  }
  VALORA_TRY(file, scheduler::read_cost_file(costs));
  server.costs = file.fitted.costs;
  return {};
}

Result<std::vector<LoadAdapter>> adapters_of(const TraceComparison& comparison) {
  const int most = std::ranges::max(comparison.workload.adapters);
  if (most == 0) return std::vector<LoadAdapter>();
  VALORA_TRY(loads, adapter_folders(comparison.lora_dir));
  const auto wanted = static_cast<size_t>(most);
  if (loads.size() < wanted)
    return invalid(fmt::format("--lora-dir {} has {} adapters, but --adapters asks for {}",
                               comparison.lora_dir, loads.size(), wanted));
  loads.resize(wanted);
  return loads;
}

bench::LiveTrace live_setting(const TraceComparison& comparison) {
  return {.engine = comparison.engine,
          .experiments = comparison.experiments,
          .picture_size = comparison.picture_size,
          .timeline = comparison.timeline,
          .fits_costs = !comparison.fit_costs.empty(),
          .ttft_target = comparison.workload.ttft_target};
}

// Where the systems run: on an engine, or with simulated costs.
struct Ground {
  std::unique_ptr<bench::TraceEngine> engine;
  bench::SimulatedServer server;
};

Result<Ground> ground_of(const TraceComparison& comparison) {
  Ground ground;
  if (!comparison.servers.empty()) return ground;
  if (!comparison.simulated) {
    VALORA_TRY(adapters, adapters_of(comparison));
    VALORA_TRY(engine, bench::TraceEngine::start(live_setting(comparison),
                                                 chosen_systems(comparison), adapters));
    ground.engine = std::move(engine);
    return ground;
  }
  ground.server = {.costs = {},
                   .max_num_seqs = comparison.engine.max_num_seqs,
                   .max_num_batched_tokens = comparison.engine.max_num_batched_tokens,
                   .max_decode_gap = comparison.engine.max_decode_gap.value_or(kTextGap),
                   .max_media_gap = comparison.engine.max_decode_gap.value_or(kMediaGap),
                   .tolerance = comparison.engine.scheduling.tolerance,
                   .early_abort = comparison.engine.scheduling.early_abort,
                   .rank = comparison.rank};
  VALORA_CHECK(simulate_server(comparison, ground.server));
  return ground;
}

// One run of a rival at a point.
struct Run {
  const bench::TracePoint& point;
  const Rival& rival;
  size_t system;  // its index, if the rival is a system
  const std::vector<sim::Arrival>& arrivals;
};

Result<bench::TraceOutcome> run_one(const TraceComparison& comparison, const Ground& ground,
                                    const Run& run, std::function<void(size_t)> progress) {
  if (run.rival.server)
    return run_on_server(live_setting(comparison), *run.rival.server, run.arrivals,
                         run.point.adapters, std::move(progress));
  if (!comparison.simulated)
    return ground.engine->run(run.system, run.arrivals, std::move(progress));
  std::optional<bench::Timeline> timeline;
  if (comparison.timeline > 0) timeline.emplace(comparison.timeline);
  VALORA_TRY(summary, bench::run_simulated(*run.rival.system, ground.server, run.arrivals,
                                           comparison.workload.ttft_target, run.point.replicas,
                                           timeline ? &*timeline : nullptr));
  return bench::TraceOutcome{summary, std::move(timeline)};
}

// Each round runs the systems in a different order, so that slow phases of the machine do not
// always hit the same one.
Result<std::vector<bench::ComparedTrace>> run_point(
    const TraceComparison& comparison, const Ground& ground, const bench::TracePoint& point,
    const std::string& name, const std::vector<sim::Arrival>& arrivals, RunsProgress& progress) {
  const std::vector<Rival> rivals = rivals_of(comparison);
  const size_t rounds = comparison.simulated ? 1 : static_cast<size_t>(comparison.rounds);
  // Other operators make steps slower, which would be mistaken for a slow machine.
  const bool corrected = !with_other_operators(comparison);
  std::vector<std::vector<TraceSummary>> summaries(rivals.size());
  std::vector<bench::ComparedTrace> rows;
  for (const Rival& rival : rivals) rows.push_back({.point = point, .system = rival.name});
  for (size_t i = 0; i < rounds * rivals.size(); ++i) {
    const size_t at = (i + i / rivals.size()) % rivals.size();
    auto shown = progress.begin(rivals[at].name + ", " + name, arrivals.size());
    VALORA_TRY(outcome,
               run_one(comparison, ground, {point, rivals[at], at, arrivals}, std::move(shown)));
    summaries[at].push_back(outcome.summary);
    const double latency = outcome.summary.token_latency;
    rows[at].token_latencies.push_back(latency);
    rows[at].at_costs_speed.push_back(latency / (corrected ? outcome.summary.cost_correction : 1));
    rows[at].timeline = std::move(outcome.timeline);
  }
  for (size_t i = 0; i < rivals.size(); ++i) rows[i].summary = bench::mean_of(summaries[i]);
  compare_rounds(rows);
  return rows;
}

Result<std::vector<bench::ComparedTrace>> run_all(const TraceComparison& comparison,
                                                  const std::vector<sim::TraceRow>& trace) {
  VALORA_TRY(points, points_of(comparison.workload));
  VALORA_TRY(ground, ground_of(comparison));
  const std::vector<std::string> names = names_of(points);
  const int rounds = comparison.simulated ? 1 : comparison.rounds;
  RunsProgress progress(points.size() * rivals_of(comparison).size() * static_cast<size_t>(rounds));
  std::vector<bench::ComparedTrace> rows;
  for (size_t i = 0; i < points.size(); ++i) {
    VALORA_TRY(arrivals, arrivals_of(comparison.workload, points[i], trace));
    VALORA_TRY(more, run_point(comparison, ground, points[i], names[i], arrivals, progress));
    std::ranges::move(more, std::back_inserter(rows));
  }
  if (!comparison.fit_costs.empty()) {
    VALORA_TRY(file, ground.engine->fitted_costs());
    VALORA_CHECK(scheduler::write_cost_file(comparison.fit_costs, file));
  }
  return rows;
}

}  // namespace

Result<std::vector<bench::ComparedTrace>> run_comparison(const TraceComparison& comparison) {
  VALORA_CHECK(check(comparison));
  std::vector<sim::TraceRow> trace;
  if (!comparison.workload.trace_file.empty()) {
    VALORA_TRY(rows, sim::read_azure_trace(comparison.workload.trace_file));
    trace = std::move(rows);
  }
  return run_all(comparison, trace);
}

}  // namespace valora::cli
